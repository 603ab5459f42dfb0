"""A caveat is printed once per image, in the result or on stderr."""

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import UNSCORED
from support.fake_server import bad_json, by_stage, fake_server
from support.full_run import configuration
from support.scripted_answers import ALL, ASSESSMENT, RATE, SCRIPT, STAND, analyse, plan

pytestmark = pytest.mark.slow

CONTRADICTION = "Contradictory evidence for Global: severe Blurs but LEARNED-IQA scores 4.58"
NO_JSON = "the answer was not a JSON object"
BABBLE = "hard to put in JSON"
GAP = "The evidence has no tool scores"
UNPLACED = "the whole image was measured"
AGAIN = "The sky was not looked at"
TO_SKY = plan("sky", flags={**ALL, "tool_selection": False, "tool_execution": False})
WORDS = "--query=Is the sky noisy?"
PLANNED = f"--query={RATE}"

SEVERE: dict[str, Any] = {**SCRIPT, "plan": plan(), "analysis": analyse("severe"), "decision": STAND}
REPEATING = {**ASSESSMENT, "quality_reasoning": f"Soft. {CONTRADICTION}. {GAP}."}
# What a model answers, further arguments, and how often each sentence is printed.
CASES: dict[str, tuple[dict[str, Any], list[str], dict[str, int]]] = {
    "one tool contradicts two": (SEVERE, [], {CONTRADICTION: 1}),
    "a model that repeats it": ({**SEVERE, "assessment": REPEATING}, [], {CONTRADICTION: 1}),
    "planned again": (
        {**SEVERE, "decision": {"need_replan": True, "replan_reason": f"{AGAIN}."}},
        [],
        {AGAIN: 2, "the limit of 2 iterations is reached": 1},  # each of two new plans has its reason
    ),
    "no assessment": ({**SEVERE, "assessment": bad_json()}, [], {NO_JSON: 1, BABBLE: 1, "parsing failed": 1}),
    "no analysis": (
        {**SEVERE, "analysis": bad_json()},
        [],
        {NO_JSON: 1, BABBLE: 1, "The evidence has no distortion analysis": 1, "no usable answer": 1},
    ),
    "no plan": ({**SEVERE, "plan": bad_json()}, [PLANNED], {NO_JSON: 2, BABBLE: 1, "no usable answer": 1}),
    "a plan against the rules": (
        {**SEVERE, "plan": plan(distortion_source="Explicit")},
        [PLANNED],
        {"distortions is empty": 1, "the model gave no valid plan": 1},
    ),
    "a region without a box": (
        {**SEVERE, "plan": TO_SKY, "location": {"regions": [{"region": "sky", "box": None}]}},
        [WORDS],
        {GAP: 1},
    ),
}


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Everything on both streams as running text, without the frames of cards."""
    shown = capsys.readouterr()
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", shown.out + shown.err).split())


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are printed as cards."""
    for name, value in {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "110", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("verbose", [[], ["-v"]], ids=["", "-v"])
@pytest.mark.parametrize("case", CASES)
def test_a_caveat_of_a_result_with_a_model_is_printed_once(
    case: str, verbose: list[str], tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, arguments, expected = CASES[case]
    if verbose and AGAIN in expected:  # the step when it happens, and the reasoning of the result
        expected = {**expected, AGAIN: 2}
    with fake_server(by_stage(script)) as server:
        config = configuration(tmp_path, server.url)
        main(["assess", str(examples / "coffee.webp"), "--no-cache", "--config", str(config), *arguments, *verbose])
    text = printed(capsys)
    assert {sentence: text.count(sentence) for sentence in expected} == expected, text


@pytest.mark.parametrize("verbose", [[], ["-v"]], ids=["", "-v"])
def test_a_caveat_of_an_offline_result_is_printed_once(
    verbose: list[str], examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", str(examples / "coffee.webp"), WORDS, *verbose]) == 0
    text = printed(capsys)
    assert {sentence: text.count(sentence) for sentence in (UNPLACED, "whole image", GAP)} == {
        UNPLACED: 1,
        "whole image": 1,
        GAP: 0,  # a refusal says itself what an answer needs
    }


def test_a_caveat_in_a_folder_is_printed_once_per_image(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "album"
    folder.mkdir()
    for number in range(3):
        with Image.open(examples / "coffee.webp") as photo:
            photo.crop((number, 0, 600, 400)).save(folder / f"{number}.png")
    with fake_server(by_stage({**SEVERE, "assessment": bad_json()})) as server:
        config = configuration(tmp_path, server.url)
        command = ["assess", str(folder), "--workers", "1", "--no-cache", "--config", str(config)]
        assert main(command) == UNSCORED
        assert main([*command, "--max-calls", "2"]) == 1
    text = printed(capsys)
    assert text.count("VLM output parsing failed") == 3, text
    # Seven lines about faults are printed without -v: four about the first image, whose last one has the answer, and
    # three about the second.
    assert (text.count(NO_JSON), text.count(BABBLE)) == (2, 1), text
    assert text.count("the limit of 2 calls is reached") == 1
