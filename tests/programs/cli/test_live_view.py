"""The live view of an assessment: each step has a label and the message of its log record."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.cli.logs import WIDEST, StepFormatter
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.events import assessing, event
from support.fake_server import by_stage, fake_server
from support.full_run import SCRIPT, configuration
from support.scripted_answers import RATE, analyse, plan

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def no_colours_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> str:
    """What is printed at ``-v`` for one image with all that may happen."""
    with pytest.MonkeyPatch.context() as patch, fake_server(by_stage(SCRIPT)) as server:
        printed: list[str] = []
        patch.setattr(
            "agenticiqa.programs.cli.logs.StderrHandler.emit", lambda self, record: printed.append(self.format(record))
        )
        asking = configuration(tmp_path_factory.mktemp("full"), server.url)
        assert (
            main(["assess", str(examples / "coffee.webp"), "-v", "--json", "--query", RATE, "--config", str(asking)])
            == 0
        )
    return "\n".join(filter(None, printed))


def record(message: str = "something", level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    reported = logging.LogRecord("agenticiqa.test", level, __file__, 1, message, None, None)
    vars(reported).update(fields)
    return reported


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_every_step_has_its_label_and_the_message_of_its_record(full: str) -> None:
    for line in (
        r"begun      .*coffee\.webp, 600 x 400",
        r"warning    vllm/test at 127\.0\.0\.1:\d+/v1: status 429: slow down.*",
        r"answered   planner: answered in \d+\.\d\d s, 10 \+ 5 tokens",
        r"planned    in \d+\.\d\d s: query type IQA, scope Global, No-Reference, tools named: none, sub-tasks:",
        r"detected   Global: Blurs, Noise",
        r"warning    distortion_analysis: attempt 1 of 3 rejected: the answer was not a JSON object",
        r"analyzed   Global: Blurs severe, Noise severe",
        r"selected   Global: LEARNED-IQA for Blurs, LEARNED-IQA for Noise, LEARNED-IQA for Overall",
        r"measured   LEARNED-IQA on Global for Blurs: raw 4\.581, calibrated 4\.58, \d+\.\d ms",
        r"scored     3\.\d\d \(Good\) from a tool mean of 4\.58 and an expected level of 3\.01 \(logprobs\)",
        r"replan     need_replan=true, reason: Severe blur is seen, .*",
        r"done       3\.\d\d in \d+\.\d\d s, 10 calls, 90 \+ 45 tokens",
    ):
        assert re.search(rf"^{line}", full, re.M), line


def test_a_second_round_is_indented_and_the_end_is_not(full: str) -> None:
    first, _, second = full.partition(", iteration 0\n")
    assert "│" not in first
    *round_two, end = second.strip("\n").splitlines()
    assert all(line.startswith("│ ") for line in round_two)
    for label in ("planned", "analyzed", "replan     not needed"):
        assert any(line.startswith(f"│ {label}") for line in round_two), label
    assert end.startswith("done ")


def test_at_the_limit_of_iterations_a_contradiction_is_a_warning(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(by_stage({**SCRIPT, "plan": plan(), "analysis": analyse("severe")})) as server:
        asking = configuration(tmp_path, server.url)
        asking.write_text(f"{asking.read_text()}max_replan_iterations: 0\n")
        assert (
            main(["assess", str(examples / "coffee.webp"), "-v", "--json", "--query", RATE, "--config", str(asking)])
            == 0
        )
    shown = " ".join(capsys.readouterr().err.split())
    assert (
        "warning replan: the limit of 0 iterations is reached; the evidence is still insufficient: Contradict" in shown
    )
    assert "not needed" not in shown
    assert server.of("decision") == []


def test_lines_are_plain_and_at_most_a_page_wide(full: str) -> None:
    assert ESCAPE not in full
    assert max(map(len, full.splitlines())) <= WIDEST


def test_on_a_terminal_warnings_are_yellow_and_lines_fit_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    text = StepFormatter().format(record("bad " * 40, logging.WARNING, event="rejected"))
    assert "\x1b[33mbad" in text
    assert max(len(plain(line)) for line in text.splitlines()) <= 60


def test_prompts_and_replies_are_shown_shortened_at_vv(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        asking = configuration(tmp_path, server.url)
        long = f"Rate the quality of this image. {'It was taken long ago. ' * 100}"
        reported = ["--query", long, "-vv", "--json", "--config", str(asking)]
        assert main(["assess", str(examples / "coffee.webp"), *reported]) == 0
    shown = capsys.readouterr().err
    assert re.search(r"^prompt     planner: attempt 1 of 3: prompt for vllm/test at ", shown, re.M)
    assert re.search(r"^ +\[system\] You plan an image quality assessment", shown, re.M)
    assert "characters left out" in shown
    assert re.search(r"\[image: image/webp, sha256\s+[0-9a-f]{64}, \d+ bytes\]", shown)
    assert re.search(r"^ +\[response_format\] \{\"type\": \"json_schema\"", shown, re.M)
    assert re.search(r"^reply      scoring: replied: \{\"assessment\": \{", shown, re.M)


def test_lines_name_their_image_only_if_several_are_assessed_in_parallel() -> None:
    view = StepFormatter()

    def shown(image: str, name: str) -> str:
        with assessing(f"album/{image}"):
            return view.format(record(f"{name}: B", **event(name)))

    for image in ("a.png", "b.png"):
        assert shown(image, "begun") == "begun      B"
        assert shown(image, "done") == "done       B"
    shown("a.png", "begun")
    assert shown("b.png", "begun") == "b.png: begun      B"
    assert shown("b.png", "detected") == "b.png: detected   B"
    assert shown("a.png", "done") == "a.png: done       B"


def test_text_of_a_model_cannot_control_the_terminal() -> None:
    said = "red \x1b[31m and \x1b]0;title\x07 and \r and \x9b2J end"
    for each in (record(said, event="concluded"), record(said, logging.WARNING), record(said, logging.DEBUG)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", StepFormatter().format(each))
        assert "end" in StepFormatter().format(each)


def test_markup_in_a_text_is_shown_unchanged() -> None:
    assert "[bold]no[/bold] [/x]" in StepFormatter().format(record("[bold]no[/bold] [/x]"))


@pytest.mark.parametrize("width", [20, 40])
def test_a_narrow_terminal_shows_every_word(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    text = plain(
        StepFormatter().format(record("alpha beta gamma delta", event="rejected", level=logging.WARNING, iteration=3))
    )
    assert re.findall(r"alpha|beta|gamma|delta", text) == ["alpha", "beta", "gamma", "delta"]


def test_a_record_without_an_event_is_shown_as_its_message() -> None:
    assert StepFormatter().format(record("assessing in threads")).strip() == "assessing in threads"
    assert StepFormatter().format(record("no map", logging.WARNING)).split() == ["warning", "no", "map"]


def test_the_label_is_the_first_word_of_the_event() -> None:
    assert StepFormatter().format(record("the new plan", event="plan_unchanged")) == "plan       the new plan"
