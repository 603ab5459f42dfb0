"""The live view of an assessment: every step has a text that is readable on any terminal."""

import logging
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from agenticiqa.programs.cli import live_view
from agenticiqa.programs.cli.live_view import WIDEST, StepFormatter
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.events import assessing, event
from agenticiqa.signatures.types import PlanFlags, SummarizerOutput
from agenticiqa.signatures.vocabulary import Severity
from support.fake_server import by_stage, fake_server
from support.full_run import DOUBT, SCRIPT, configuration

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
        assert main(["assess", str(examples / "coffee.webp"), "-v", "--json", "--config", str(asking)]) == 0
    return "\n".join(filter(None, printed))


def record(message: str = "something", level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    reported = logging.LogRecord("agenticiqa.test", level, __file__, 1, message, None, None)
    vars(reported).update(fields)
    return reported


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_every_step_has_its_line(full: str) -> None:
    for line in (
        r"image      coffee\.webp, 600 x 400 pixels, assessed by vllm\.test",
        r"question   Rate the perceptual quality of this image\.",
        r"retry      vllm@127\.0\.0\.1:\d+/v1//test: status 429: slow down.*",
        r"asked      planner, \d\.\d\d s, 10 \+ 5 tokens, 1 retry, 0\.0000 USD",
        r"plan       quality question, about the whole image, without a reference",
        r"           steps: find distortions, rate their severity, select tools, measure",
        r"detected   Blurs, Noise",
        r"rejected   distortion_analysis: attempt 1 of 3 rejected: the answer was not a JSON object",
        r"severity   Blurs: severe  Blurs in Global.",
        r"           Noise: severe  Noise in Global.",
        r"chosen     LEARNED-IQA for Blurs, Noise, Overall",
        r"tool       LEARNED-IQA    raw 4\.581     █████████░ 4\.58  Blurs, \d+ ms",
        r"levels     Excellent ░{20}   1%",
        r"           Fair      █{14}░{6}  69%",
        r"           from the log-probabilities that the model wrote",
        r"fusion     tool mean 4\.58 \(n=1\), expected level 3\.01 -> 3\.\d\d Good",
        rf"replan     plan again: {DOUBT}",
        r"done       3\.\d\d of 5 in \d+\.\d\d s, 10 calls, 90 \+ 45 tokens, 1 retry, 0\.0002 USD",
    ):
        assert re.search(rf"^{line}$", full, re.M), line


def test_a_second_round_is_indented_and_the_end_is_not(full: str) -> None:
    first, _, second = full.partition(DOUBT)
    assert "│" not in first
    *round_two, end = second.strip("\n").splitlines()
    assert all(line.startswith("│ ") for line in round_two)
    for line in (
        r"plan       quality question",
        r"           named: Blurs",
        r"severity   Blurs: slight",
        r"replan     not needed, the",
    ):
        assert any(re.match(rf"│ {line}", each) for each in round_two), line
    assert end.startswith("done ")


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
    assert re.search(r"^prompt     planner, attempt 1 of 3, sent to vllm@.*, temperature 0\.0,", shown, re.M)
    assert re.search(r"^system     You plan an image quality assessment", shown, re.M)
    assert "characters left out" in shown
    assert re.search(r"\[image: image/webp, sha256\s+[0-9a-f]{64}, \d+ bytes\]", shown)
    assert re.search(r"^schema     \{\"type\": \"json_schema\"", shown, re.M)
    assert re.search(r"^reply      scoring, \d+ characters, finish_reason stop\n +\{\"assessment\": \{", shown, re.M)


def test_rows_name_their_image_only_if_several_are_assessed_in_parallel() -> None:
    view = StepFormatter()
    begun = {"size": [4, 3], "reference": None, "query": "Sharp?", "backend": "offline"}
    done = {"answer": "B", "score": None, "seconds": 1.0, "calls": 0, "cached": 0}

    def shown(image: str, name: str, **fields: Any) -> list[str]:
        with assessing(f"album/{image}"):
            return view.format(record(**event(name, **fields))).splitlines()

    for image in ("a.png", "b.png"):
        assert shown(image, "begun", **begun)[0].startswith(f"image      {image}, 4 x 3 pixels, assessed offline")
        assert shown(image, "done", **done) == ["done       B in 1.00 s"]
    shown("a.png", "begun", **begun)
    for lines in (shown("b.png", "begun", **begun), shown("b.png", "detected", distortions={"Global": []})):
        assert lines
        assert all(line.startswith("b.png: ") for line in lines)
    assert shown("a.png", "done", **done) == ["a.png: done       B in 1.00 s"]


def test_text_of_a_model_cannot_control_the_terminal() -> None:
    said = "red \x1b[31m and \x1b]0;title\x07 and \r and \x9b2J end"
    row = {"type": "Blurs", "severity": "slight", "explanation": said}
    for each in (
        record(event="analyzed", analysis={"Global": [row]}),
        record(event="concluded", answer=said, reasoning=said),
        record(said, logging.WARNING),
    ):
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
    assert StepFormatter().format(record("judging in threads")).strip() == "judging in threads"
    assert StepFormatter().format(record("no map", logging.WARNING)).split() == ["warning", "no", "map"]


def test_regions_and_failed_tools_are_named() -> None:
    located = StepFormatter().format(record(event="located", boxes={"sky": (1, 2, 31, 22), "cat": None}))
    assert located.splitlines() == ["located    sky: 30 x 20 pixels at (1, 2)", "           cat: not found"]
    call = {"tool": "NIQE", "region": "sky", "distortion": "Noise", "raw": None, "calibrated": None, "ms": 1.0}
    line = StepFormatter().format(record(event="measured", error="too small", box=None, **call))
    assert line.split() == ["tool", "NIQE", "no", "score", "Noise", "in", "sky"]


def test_a_score_without_tools_comes_from_the_levels_alone() -> None:
    shares = {"1": 0.0, "2": 0.0, "3": 0.25, "4": 0.75, "5": 0.0}
    fields = {"score": 3.75, "quality_level": "Good", "tool_mean": None, "tools": 0, "level_expectation": 3.75}
    lines = StepFormatter().format(
        record(event="scored", probabilities=shares, probability_source="logprobs", **fields)
    )
    assert lines.splitlines()[-1] == "fusion     expected level 3.75 -> 3.75 Good"


def test_every_severity_flag_and_source_has_a_text() -> None:
    assert set(live_view.SEVERITIES) == set(get_args(Severity))
    assert set(live_view.TO_DO) == set(PlanFlags.model_fields)
    sources = SummarizerOutput.model_fields["probability_source"].annotation
    named = {name for part in get_args(sources) for name in get_args(part)}
    assert set(live_view.SOURCES) == named
