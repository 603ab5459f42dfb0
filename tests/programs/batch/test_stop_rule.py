"""A run that is interrupted, or loses its model, ends early, keeps finished results, and can continue."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import dspy
import pytest
from dspy import lm15

from agenticiqa.programs.backends.failures import NoConnection
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.stop_rule import FAILURES_IN_A_ROW, StopRule
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import ImageError, NoScore, Unanswered, UserError
from support.fake_server import (
    Script,
    Server,
    bad_key,
    by_stage,
    fake_server,
    images_of,
    rate_limited,
    server_error,
    stage_of,
)
from support.files import json_lines
from support.images import album_of_squares
from support.loopback import Body, Reply
from support.scripted_answers import RATE, RATED, plan

IMAGES = 14
ANSWERS = by_stage({"plan": plan(), "assessment": RATED})


@pytest.mark.parametrize(
    "outcome",
    [
        dspy.LMAuthError("no such key"),
        dspy.LMBillingError("no money"),
        dspy.LMUnsupportedModelError("no such model"),
        LimitReached("enough"),
        UserError("a tool that is not installed"),
    ],
)
def test_an_error_that_concerns_every_image_ends_a_run_at_once(outcome: Exception) -> None:
    outages = StopRule(workers=4)
    assert not outages.should_stop({"final_answer": 3.0})
    assert outages.should_stop(outcome)
    assert outages.ended_by is outcome


@pytest.mark.parametrize("outcome", [ImageError("broken file"), NoScore("nothing measured"), {"row": 1}])
def test_an_error_of_one_image_never_ends_a_run(outcome: object) -> None:
    outages = StopRule(workers=1)
    assert not any(outages.should_stop(outcome) for _ in range(100))
    assert outages.ended_by is None


def test_a_model_counts_as_unreachable_after_failures_in_a_row() -> None:
    outages, down = StopRule(workers=2), dspy.LMServerError("down")
    longest = FAILURES_IN_A_ROW + 2 * 2 - 1
    for _ in range(3):  # an answer in between shows that it is there
        assert not any(outages.should_stop(down) for _ in range(longest))
        assert not outages.should_stop({"row": 1})
    assert [outages.should_stop(down) for _ in range(longest + 1)] == [False] * longest + [True]


def test_only_a_server_that_was_never_reachable_ends_a_run_at_once() -> None:
    unreachable, cut = dspy.LMTransportError("in any words"), dspy.LMTransportError("failed to connect to host:8000")
    unreachable.__cause__, cut.__cause__ = NoConnection("in any words"), lm15.TransportError("failed to connect")
    assert StopRule(workers=4).should_stop(unreachable)
    assert not StopRule(workers=4).should_stop(cut)
    for first in ({"row": 1}, dspy.LMInvalidRequestError("too large")):
        outages = StopRule(workers=4)
        assert [outages.should_stop(each) for each in (first, unreachable)] == [False, False]


@pytest.fixture
def album(tmp_path: Path) -> Path:
    return album_of_squares(tmp_path / "album", IMAGES)


def command(album: Path, server: Server, file: Path, *more: str) -> list[str]:
    """Return a command with two questions per image, one image after the other."""
    to = ["--backend", "vllm.test", "--api-base", server.url, "--mode", "fast", "--workers", "1"]
    return ["assess", str(album), "--query", RATE, "--jsonl", str(file), *to, *more]


class Switch:
    """A script that answers until it is broken, or until ``after`` assessments."""

    def __init__(self, fault: Reply, after: int) -> None:
        self.fault, self.after, self.shown, self.broken = fault, after, 0, False
        self._lock = threading.Lock()

    def __call__(self, request: Body) -> Reply | str:
        with self._lock:
            if self.broken:
                return self.fault
            if stage_of(request) == "assessment":
                self.shown += 1
                self.broken = self.shown == self.after
        return ANSWERS(request)


def test_an_outage_ends_the_run_and_resume_continues(
    album: Path, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    file, switch = tmp_path / "scores.jsonl", Switch(server_error(), after=3)
    with fake_server(switch) as server:
        assert main(command(album, server, file)) == 1
        shown = capsys.readouterr().err
        kept = json_lines(file)
        assert len(kept) == 3
        failed = FAILURES_IN_A_ROW + 2
        assert shown.count("something broke\n") == failed
        assert f"3 assessed, {failed} failed, saved in" in shown
        assert (
            f"stopped; {IMAGES - 3 - failed} images were not assessed; run the same command with --resume to continue"
            in shown
        )
        assert len(waits) == 3 * failed, "each of them was tried again three times"
        asked = len(server.requests)
        switch.broken = False
        assert main(command(album, server, file, "--resume")) == 0
        assert len(server.requests) == asked + 2 * (IMAGES - 3), "nothing that was answered is asked again"
    assert f"3 of {IMAGES} images were already assessed" in capsys.readouterr().err
    assert json_lines(file)[:3] == kept
    assert sorted(Path(row["image"]).name for row in json_lines(file)) == sorted(path.name for path in album.iterdir())


@pytest.mark.parametrize(
    ("fault", "shown"), [(bad_key(), "no such key"), (Reply(status=402, raw_body=b'{"error": "pay"}'), "pay")]
)
def test_a_key_that_stops_working_ends_the_run_at_once(
    album: Path, tmp_path: Path, fault: Reply, shown: str, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scores.jsonl"
    with fake_server(Switch(fault, after=3)) as server:
        assert main(command(album, server, file)) == 1
        assert len(server.requests) == 3 * 2 + 1
    said = capsys.readouterr().err
    assert said.count(shown) == 1
    assert f"stopped; {IMAGES - 4} images were not assessed" in said
    assert (len(json_lines(file)), waits) == (3, [])


def test_a_wait_of_an_hour_is_not_repeated_for_each_image(
    album: Path, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(Switch(rate_limited(3600), after=1)) as server:
        assert main(command(album, server, tmp_path / "scores.jsonl")) == 1
    assert waits == []
    assert "the server asks to wait 3600 s" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["vllm.test", "anthropic.claude-test"])
def test_a_server_that_is_unreachable_from_the_start_is_reported_once(
    backend: str, album: Path, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(ANSWERS) as unreachable:
        pass
    assert main(command(album, unreachable, tmp_path / "scores.jsonl", "--backend", backend)) == 1
    shown = capsys.readouterr().err.splitlines()
    (reported,) = (line for line in shown if "refused" in line and line.startswith("agenticiqa:"))
    assert "check that the server is running" in reported
    assert (tmp_path / "scores.jsonl").read_bytes() == b""
    assert len(waits) == 3


def test_the_limit_of_calls_is_never_exceeded_and_resume_continues(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scores.jsonl"
    with fake_server(ANSWERS) as server:
        assert main(command(album, server, file, "--workers", "3", "--max-calls", "15")) == 1
        assert len(server.requests) == 15
        shown = capsys.readouterr().err
        assert shown.count("the limit of 15 calls is reached") == 1
        before = len(json_lines(file))
        assert before > 0
        assert f"stopped; {IMAGES - before} images were not assessed" in shown
        assert main(command(album, server, file, "--resume")) == 0
    assert len(json_lines(file)) == IMAGES


@pytest.mark.slow  # the one of tests/programs/cli/test_cli.py, offline, is not
@pytest.mark.parametrize("hangs", [False, True], ids=["answers", "hangs"])
def test_ctrl_c_keeps_finished_results_and_resume_continues(album: Path, tmp_path: Path, hangs: bool) -> None:
    file, stopping = tmp_path / "scores.jsonl", threading.Event()

    def slowly(request: Body) -> Reply | str:
        stopping.wait(0.1 if not hangs or len(server.requests) < 8 else 1.0)
        return ANSWERS(request)

    with fake_server(slowly) as server:
        arguments = command(album, server, file, "--workers", "2")
        run = started(arguments)
        until(lambda: len(server.requests) >= 10 and file.exists() and len(json_lines(file)) >= 2)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does it
        asked = len(server.requests)
        _, error = run.communicate(timeout=30)
        assert run.returncode == 130
        assert error.splitlines()[-1] == "agenticiqa: interrupted"
        assert "Traceback" not in error
        assert len(server.requests) <= asked + 2, "no more than what was about to be sent"
        kept = json_lines(file)
        assert 2 <= len(kept) < IMAGES
        stopping.set()
        assert main([*arguments, "--resume"]) == 0
    assert json_lines(file)[: len(kept)] == kept
    assert len(json_lines(file)) == IMAGES


def started(arguments: list[str]) -> "subprocess.Popen[str]":
    whole = [sys.executable, "-m", "agenticiqa", *arguments]
    return subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, start_new_session=True)


def until(reached: Callable[[], bool]) -> None:
    for _ in range(1200):
        if reached():
            return
        time.sleep(0.025)
    raise AssertionError("it never came to that")


def forbidden(message: str = "flagged") -> dspy.LMAuthError:
    error = dspy.LMAuthError(message)
    error.__cause__ = lm15.AuthError(message, status=403)
    return error


def test_status_403_concerns_one_image_once_the_server_answered_about_another() -> None:
    longest = FAILURES_IN_A_ROW + 2 * 2 - 1
    for rule in (StopRule(workers=2), StopRule(workers=2, accepted=True)):
        first = [] if rule.accepted else [rule.should_stop({"row": 1})]
        outcomes = [rule.should_stop(forbidden()) for _ in range(longest + 1)]
        assert first + outcomes == [False] * (len(first) + longest) + [True], "several in a row end the run"
    first = StopRule(workers=2)
    assert not any(first.should_stop(forbidden()) for _ in range(longest)), "the others may be answered"
    assert first.should_stop(forbidden()), "a key that is refused"
    assert first.should_stop({"row": 1}), "an image under way does not change why the run ended"
    assert first.given_up_after == longest + 1


def test_answers_of_which_none_is_usable_end_a_run_unless_it_keeps_going() -> None:
    longest, unusable = FAILURES_IN_A_ROW + 2 * 2 - 1, Unanswered("plan", ["no JSON"])
    assert [StopRule(2).should_stop(unusable) for _ in range(2)] == [False, False]
    rule = StopRule(workers=2)
    assert [rule.should_stop(unusable) for _ in range(longest + 1)] == [False] * longest + [True]
    for going in (StopRule(2, keep_going=True), StopRule(2, accepted=True)):
        assert not any(going.should_stop(unusable) for _ in range(100))


@pytest.mark.parametrize("answer", [Reply(status=403, raw_body=b"{}"), "", "I cannot help with that."])
def test_a_server_without_any_usable_answer_is_not_asked_for_each_image(
    answer: Reply | str, album: Path, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(lambda _: answer) as server:
        assert main(command(album, server, tmp_path / "a.jsonl")) == 1
        few, shown = len(server.requests), capsys.readouterr().err
        assert f"the last {FAILURES_IN_A_ROW + 2} images had no usable answer; check the errors above" in shown
        assert f"stopped; {IMAGES - FAILURES_IN_A_ROW - 2} images were not assessed" in shown
        assert main(command(album, server, tmp_path / "b.jsonl", "--keep-going")) == 1
        assert len(server.requests) == few + few // (FAILURES_IN_A_ROW + 2) * IMAGES


def test_plans_without_any_usable_assessment_end_a_run(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(lambda request: json.dumps(plan()) if stage_of(request) == "plan" else "no") as server:
        main([*command(album, server, tmp_path / "a.jsonl"), "--mode", "full"])
    assert f"the last {FAILURES_IN_A_ROW + 2} images had no usable answer" in capsys.readouterr().err
    assert len(json_lines(tmp_path / "a.jsonl")) == FAILURES_IN_A_ROW + 2


@pytest.mark.parametrize("refused", [2, FAILURES_IN_A_ROW + 2 * 2])
def test_images_that_are_refused_come_last_when_a_run_continues(
    refused: int, album: Path, tmp_path: Path, waits: list[float]
) -> None:
    """Moderated images at the beginning, as many as workers, or as many as end a run."""
    moderated = [path.read_bytes() for path in sorted(album.iterdir())[:refused]]

    def script(request: Body) -> Reply | str:
        is_refused = any(data in moderated for _, data in images_of(request))
        return Reply(status=403, raw_body=b'{"error": {"message": "flagged"}}') if is_refused else ANSWERS(request)

    file = tmp_path / "a.jsonl"
    with fake_server(script) as server:
        assert main(command(album, server, file, "--workers", "2")) == 1
        assert len(json_lines(file)) == (IMAGES - refused if refused == 2 else 0)
        assert main(command(album, server, file, "--workers", "2", "--resume")) == 1
    assert len(json_lines(file)) == IMAGES - refused


def completion(content: object = "", **message: object) -> Reply:
    written = {"role": "assistant", "content": content, **message}
    body = {"choices": [{"index": 0, "message": written, "finish_reason": "stop"}]}
    return Reply(raw_body=json.dumps(body).encode())


def planning(*tools: object) -> Reply:
    return completion(json.dumps(plan(required_tool=list(tools))))


# Answers to each request about one image; those of the first part are tried in the quick tests, too.
NASTY: dict[str, Reply | Script] = {
    "a tool that is a word of the question": planning("quality"),
    "a lone surrogate in assessments": by_stage({"plan": plan(), "assessment": completion("no \ud83d JSON")}),
    "a page of a firewall": Reply(status=403, raw_body=b"<html>blocked</html>"),
    "blanks in a fence": completion("", reasoning="```" + " " * 20_000 + "x"),
}
ODD: dict[str, Reply | Script] = NASTY | {
    "a lone surrogate in no JSON": completion("not \ud83d JSON"),
    **{f"a tool {name!r}": planning(name) for name in ("e", "?", "", " ", "RATE", "\ud83d", "\0", "x" * 70_000, 7)},
    "a tool in a tool": planning(["NIQE"], {"name": "NIQE"}, None),
    **{f"status {code}": Reply(status=code, raw_body=b'{"error": {"message": "no"}}') for code in (403, 400, 451, 422)},
    "403 with a surrogate": Reply(status=403, raw_body=b'{"error": {"message": "no \\ud83d"}}'),
    "200 with an error": Reply(raw_body=b'{"error": {"message": "moderated", "code": 403}}'),
    "no body": Reply(raw_body=b""),
    "no JSON": Reply(raw_body=b"<html>"),
    "a list": Reply(raw_body=b"[1]"),
    "deep": Reply(raw_body=b"[" * 100_000),
    "a number of 5,000 digits": Reply(raw_body=b'{"choices": ' + b"9" * 5_000 + b"}"),
    "deep content": completion('{"plan": ' + "[" * 50_000),
    "long content": completion("x" * 200_000),
    "content of 5,000 digits": completion('{"quality_level": ' + "9" * 5_000 + "}"),
    "content of NaN": completion('{"quality_probs": {"1": NaN, "2": -Infinity}}'),
    "a surrogate in a key": completion('{"\\ud83d": 1}'),
    "a surrogate in a value": completion(
        '{"quality_level": "\\udc00", "quality_probs": {}, "quality_reasoning": "\\ud83d"}'
    ),
    "a surrogate in reasoning": completion("", reasoning_content="\udfff"),
    "zero bytes": completion("\0" * 100),
    "control characters": completion("\x1b[2J\x9b\u202e"),
    "a list as content": completion([{"type": "text", "text": 5}, None, {"type": "thinking", "thinking": {}}]),
    "a number as content": completion(5),
    "null": completion(None),
    "a refusal": completion(None, refusal="I \ud83d cannot"),
    "tool calls": completion(
        None, tool_calls=[{"id": "1", "type": "function", "function": {"name": "x", "arguments": "{"}}]
    ),
    "a template": completion("<|im_end|> [[ ## query ## ]] {{x}} %s {0}"),
    "a marker": completion("<<CUSTOM-TYPE-START-IDENTIFIER>>[]<<CUSTOM-TYPE-END-IDENTIFIER>>"),
    "brackets": completion("[{" * 400),
    "quotes": completion("'" * 60_000),
    "a fence": completion("```json\n" + "\n" * 50_000),
    "thoughts": completion("<think>" * 8_000),
}


def with_odd_answers(folder: Path, script: Script, odd: Reply | Script, which: int) -> Script:
    """Return a script that answers ``odd`` to each request about one image."""
    content = sorted(folder.iterdir())[which].read_bytes()

    def answer(request: Body) -> Reply | str:
        if all(data != content for _, data in images_of(request)):
            return script(request)
        return odd if isinstance(odd, Reply) else odd(request)

    return answer


@pytest.mark.parametrize(
    "name", [*NASTY, *(pytest.param(name, marks=pytest.mark.slow) for name in [*ODD][len(NASTY) :])]
)
def test_what_one_answer_contains_can_fail_its_own_image_only(
    name: str, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = album_of_squares(tmp_path / "album", 5), tmp_path / "scores.jsonl"
    with fake_server(with_odd_answers(folder, ANSWERS, ODD[name], which=1)) as server:
        status = main(command(folder, server, file))
        rows = {Path(row["image"]).name for row in json_lines(file)}
        shown = capsys.readouterr().err
        assert rows >= {"00.png", "02.png", "03.png", "04.png"}, shown
        assert "Traceback" not in shown
        assert "not assessed" not in shown
        if "01.png" not in rows:
            assert status == 1
            assert "01.png: " in shown
            assert main(command(folder, server, file, "--resume")) == 1, "the same for this image alone"
            assert "not assessed" not in capsys.readouterr().err
