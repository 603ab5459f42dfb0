"""The spinner of one image on a terminal: the steps in order, whole warnings, and nothing left at the end."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from agenticiqa.configs import Config
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.logs import STAGES, steps_shown
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.ask import CheckedPredict
from support import full_run
from support.fake_server import by_stage, fake_server
from support.loopback import Body, Reply
from support.scripted_answers import RATE
from support.terminal import Screen, run_on_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")

SPINNER = re.compile(r"[-|/\\\\] (?=[a-z])(.+)")
SECONDS = 0.25  # an answer takes longer than two pictures of the spinner are apart
# What stays above the card: the line that names the model, and two whole warnings that only the terminal breaks.
ABOVE = (
    r"vllm\.test at [^)]+\) *"
    r"IMAGE: vllm/test at [\d.:]+/v1: status 429: slow down \(the server asks to wait 0 s\); "
    r"attempt 2 follows in 0\.0 s *"
    r"IMAGE: vllm/test at [\d.:]+/v1 ignores the JSON schema of requests, so more of its answers may be rejected *"
    r"IMAGE: distortion_analysis: attempt 1 of 3 rejected: the answer was not a JSON object *"
)


def steps(screen: Screen) -> list[str]:
    """What the spinner showed, in order."""
    matches = map(SPINNER.fullmatch, screen.seen)
    return [step for step, _ in groupby(match[1] for match in matches if match)]


def agenticiqa(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "agenticiqa", *map(str, arguments)]


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Path]:
    """The configuration of a server that takes its time, refuses a request, and once gives an unusable answer."""
    script = by_stage(full_run.SCRIPT)

    def later(request: Body) -> Reply:
        answer = script(request)
        return replace(answer if isinstance(answer, Reply) else Reply(answer), delay=SECONDS)

    with fake_server(later) as server:
        yield full_run.configuration(tmp_path, server.url)


@pytest.mark.parametrize(
    "columns", [pytest.param(30, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.slow), 100]
)
def test_one_image_shows_its_steps_and_then_only_its_warnings_and_its_card(
    columns: int, slow: Path, examples: Path
) -> None:
    image = examples / "coffee.webp"
    status, screen, _ = run_on_terminal(agenticiqa("assess", image, "--query", RATE, "--config", slow), columns)
    assert (status, screen.cursor) == (0, True)
    shown = steps(screen)
    wanted = ["assessing", "planning", "looking for distortions", "assessing their severity, attempt 2 of 3"]
    wanted += ["planning", "assessing their severity", "asking for the score"]  # in the second round
    order = iter(shown)
    whole = [step for step in wanted if len(step) <= columns - 2]  # others end in "…"
    assert all(step in order for step in whole), shown
    rows = screen.shown()
    first = next(number for number, row in enumerate(rows) if row.startswith("╭─"))
    above, card = "".join(row.ljust(columns) for row in rows[:first]), rows[first:]
    assert re.fullmatch(ABOVE, above.replace(f"{image}:", "IMAGE:"))
    assert card[-1].startswith("╰─")
    assert all(row.startswith("│") and row.endswith("│") for row in card[1:-1])


def test_ctrl_c_leaves_a_clean_terminal(slow: Path, examples: Path) -> None:
    command = agenticiqa("assess", examples / "coffee.webp", "--config", slow)
    status, screen, _ = run_on_terminal(command, 200, "looking for distortions")
    assert (status, screen.cursor) == (130, True)
    assert screen.shown()[-1] == "agenticiqa: interrupted"
    assert not [row for row in screen.shown() if SPINNER.fullmatch(row)]


@pytest.mark.parametrize(
    ("arguments", "piped", "shown"),
    [
        pytest.param(["assess"], False, ["assessing", "measuring"], id="card"),
        pytest.param(["assess", "--json"], False, ["assessing", "measuring"], id="json", marks=pytest.mark.slow),
        pytest.param(["compare", "--json"], False, ["assessing", "measuring"], id="compare", marks=pytest.mark.slow),
        pytest.param(["assess", "-q"], False, [], id="quiet", marks=pytest.mark.slow),
        pytest.param(["assess", "-v"], False, [], id="verbose", marks=pytest.mark.slow),
        pytest.param(["assess"], True, [], id="piped"),
    ],
)
def test_a_spinner_is_shown_to_people_who_wait(
    arguments: list[str], piped: bool, shown: list[str], examples: Path
) -> None:
    """Also without a model, and also with a log."""
    command = agenticiqa(*arguments, examples / "coffee.webp")
    status, screen, error = run_on_terminal(command, piped_stderr=piped)
    assert (status, steps(screen), error) == (0, shown, "")


@pytest.mark.slow
def test_a_log_has_the_same_records_with_and_without_a_spinner(examples: Path, tmp_path: Path) -> None:
    logs = [tmp_path / "spinner.log", tmp_path / "piped.log"]
    for log, piped in zip(logs, (False, True), strict=True):
        run_on_terminal(agenticiqa("assess", examples / "coffee.webp", "--log", log), piped_stderr=piped)
    events = [sorted(re.findall(r'"event": "(\w+)"', log.read_text())) for log in logs]  # some stages overlap
    assert events[0] == events[1]
    assert {"begun", "measured", "done"} <= {*events[0]}


def test_the_latest_request_under_way_is_shown() -> None:
    """The analysis is asked while tools are chosen and run; another model is asked without a new record."""
    shown: list[str] = []
    with steps_shown(shown.append):
        progress.asked("distortion_analysis", 1, 3)
        progress.asked("tool_selection", 1, 3)
        progress.fell_back("tool_selection", "a", ValueError("unreachable"))
        progress.rejected({"stage": "tool_selection", "attempt": 1, "attempts": 3}, ["bad"], 0.1, "")
        progress.asked("tool_selection", 2, 3)
        progress.unanswered("tool_selection", 3, "bad")
        progress.unchanged_plan(offline=True)
        progress.located({})
        progress.unanswered("distortion_analysis", 3, "bad")
        progress.asked("of_a_user", 1, 1)
    progress.asked("planner", 1, 3)
    analysis, tools = "assessing their severity", "choosing tools"
    again = f"{tools}, attempt 2 of 3"
    assert shown == [analysis, tools, tools, analysis, again, *[analysis] * 3, "measuring", "asking the model"]


def test_every_stage_that_asks_a_model_has_words() -> None:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:1/v1"))
    stages = {module.stage for _, module in program.named_sub_modules(CheckedPredict)}
    assert stages == {*STAGES}
