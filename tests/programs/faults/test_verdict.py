"""What a sweep calls good, poor and a defect; and the bounds of the processes that it tries."""

import copy
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.faulty import trial as trials
from support.faulty.exchange import Profile
from support.faulty.profiles import HEALTHY
from support.faulty.trial import KEY, Ran, Trial, make_photos
from support.faulty.verdict import Baseline, Verdict, judge, state_of
from support.faulty_server import Entry

pytestmark = pytest.mark.slow

ENTRY = Entry(0.1, "assessment", "img-00000001", 1, 1, True, 1000, 1000, (1000, 100))
ROWS = 4


def row(number: int, score: float | None = 3.0, **evidence: Any) -> dict[str, Any]:
    """A row as far as a verdict reads it."""
    found = {"distortion_set": {"Global": ["Noise"]}, "distortion_analysis": {}, "selected_tools": {}}
    return {
        "image": f"{number}.png",
        "quality_score": score,
        "quality_probs": {"1": 0.1, "2": 0.2, "3": 0.4, "4": 0.2, "5": 0.1},
        "quality_reasoning": f"Seen in img-0000000{number}.",
        "probability_source": "logprobs",
        "rejected_answers": {},
        "executor_evidence": {**found, "failures": {}, "notes": [], **evidence},
    }


GOOD = [row(number) for number in range(ROWS)]
HEALTHY_RUN = Baseline({each["image"]: each for each in GOOD}, requests=20, usd=0.1, rss=300.0)


def ran(**changes: Any) -> Ran:
    return Ran(**{"status": 0, "out": "", "err": "", "seconds": 5.0, "rss": 300.0, "output": 0, **changes})


def verdict_of(
    rows: list[dict[str, Any]], first: Ran, healed: list[dict[str, Any]] | None = None, **more: Any
) -> Verdict:
    """The verdict on a run that left these rows; with ``healed`` one that was resumed."""
    again = None if healed is None else more.pop("again", ran())
    seen, profile = more.pop("seen", [ENTRY] * 20), more.pop("profile", HEALTHY)
    trial = Trial(first, again, rows, healed or rows, seen, more.pop("usd", 0.1), more.pop("limit", None), **more)
    return judge(trial, profile, HEALTHY_RUN)


FAULT = Profile("a-fault", "any", lambda ex: None)


def test_a_healthy_run_is_good() -> None:
    assert verdict_of(GOOD, ran()).word == "good"


def test_missing_rows_that_resume_heals_are_good() -> None:
    assert verdict_of(GOOD[:1], ran(status=1), GOOD, profile=FAULT).word == "good"


def test_answers_that_a_good_client_gets_are_poor_when_they_are_thrown_away() -> None:
    verdict = verdict_of(GOOD[:1], ran(status=1), GOOD)
    assert verdict.word == "poor"
    assert "3 of 4 answers" in verdict.reason


def test_an_answer_about_another_image_is_a_wrong_row() -> None:
    stale = copy.deepcopy(GOOD)
    stale[1]["quality_reasoning"] = "Seen in img-00000003."
    verdict = verdict_of(stale, ran(), profile=FAULT)
    assert verdict.word == "defect"
    assert "1 wrong rows" in verdict.reason


def test_what_no_client_can_detect_is_no_defect() -> None:
    stale = copy.deepcopy(GOOD)
    stale[1]["quality_reasoning"] = "Seen in img-00000003."
    mixed_up = Profile("mixed-up", "any", lambda ex: None, expect="undetectable")
    assert verdict_of(stale, ran(), profile=mixed_up).word == "good"
    assert "1 unscored" in verdict_of([row(0, None), *stale[1:]], ran(), profile=mixed_up).reason


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        (row(0), "right"),
        (row(0, 3.01), "right"),
        (row(0, 3.3), "wrong"),
        (row(0, None), "unscored"),
        ({**row(0), "quality_probs": {"1": 0.9, "2": 0.1}}, "wrong"),
        (row(0, distortion_set={"Global": ["Blurs"]}), "wrong"),
        (row(0, 3.3, failures={"distortion_detection": "no usable answer"}), "degraded"),
        ({**row(0, 3.3), "rejected_answers": {"scoring": ["no JSON"]}}, "degraded"),
        ({**row(0, 3.3), "probability_source": "uniform"}, "degraded"),
    ],
)
def test_the_state_of_a_row(changed: dict[str, Any], state: str) -> None:
    assert state_of(changed, GOOD[0]) == state


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (ran(err="Traceback (most recent call last):\n  File x\nKeyError: 'a'"), "traceback (KeyError"),
        (ran(status=None, ended="time", seconds=45.0, ctrl_c=1.5), "Ctrl-C left after 1.5 s"),
        (ran(status=None, ended="time", seconds=45.0), "killed after Ctrl-C"),
        (ran(status=None, ended="memory", rss=950.0), "took 950.0 MB"),
        (ran(status=-11), "exit status -11"),
        (ran(output=200_000), "200,000 characters"),
        (ran(err="\x1b[31mred"), "control character"),
        (ran(err="right to left \u202e"), "control character"),
        (ran(err=f"no such key {KEY}"), "the key in the output"),
        (ran(err=f"no such key {KEY[:-10]}***"), "the key in the output"),
    ],
)
def test_what_a_run_shows_is_a_defect(first: Ran, words: str) -> None:
    verdict = verdict_of(GOOD, first)
    assert verdict.word == "defect"
    assert words in verdict.reason


def test_status_0_with_something_not_judged_is_a_defect() -> None:
    assert "exit status 0" in verdict_of(GOOD[:3], ran(), GOOD, profile=FAULT).reason
    assert "exit status 0" in verdict_of([row(0, None), *GOOD[1:]], ran(), GOOD, profile=FAULT).reason


def test_what_resume_does_not_heal_is_a_defect() -> None:
    unscored = [row(0, None), *GOOD[1:]]
    assert "not healed by --resume: 1 unscored" in verdict_of(unscored, ran(status=1), unscored, profile=FAULT).reason
    assert "1 missing" in verdict_of(GOOD[:3], ran(status=1), GOOD[:3], profile=FAULT).reason
    failed = verdict_of(GOOD[:3], ran(status=1), GOOD, again=ran(status=1), profile=FAULT)
    assert "resume: exit status 1" in failed.reason


def test_rows_that_stay_degraded_are_poor() -> None:
    degraded = [row(0, 3.3, failures={"tool_selection": "no usable answer"}), *GOOD[1:]]
    assert verdict_of(degraded, ran(), degraded, profile=FAULT).word == "poor"


def test_requests_memory_and_money_have_bounds() -> None:
    assert verdict_of(GOOD, ran(), seen=[ENTRY] * 70).word == "poor"
    assert verdict_of(GOOD, ran(), seen=[ENTRY] * 130).word == "defect"
    assert verdict_of(GOOD, ran(rss=600.0)).word == "poor"
    assert verdict_of(GOOD, ran(), usd=0.2, limit=0.1).word == "defect"
    assert verdict_of(GOOD, ran(), usd=0.1, limit=0.1).word == "good"
    assert "cache/x.db" in verdict_of(GOOD, ran(), leaks=["cache/x.db"]).reason


def test_a_process_is_ended_at_its_time_by_ctrl_c(tmp_path: Path) -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    code = "import sys, time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(130)"
    done = trials._run([sys.executable, "-c", code], tmp_path, wall=1.0)
    assert (done.ended, done.status) == ("time", None)
    assert done.ctrl_c is not None
    assert done.seconds < 5


def test_a_process_that_ignores_ctrl_c_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "AFTER_CTRL_C", 0.5)
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
    done = trials._run([sys.executable, "-c", code], tmp_path, wall=1.0)
    assert (done.ended, done.ctrl_c) == ("time", None)
    assert done.seconds < 5


def test_a_process_that_takes_too_much_memory_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MOST_RSS", 100)
    began = time.perf_counter()
    code = "import time\nheld = [bytearray(1 << 20) for _ in range(150)]\ntime.sleep(60)"
    done = trials._run([sys.executable, "-c", code], tmp_path, wall=30.0)
    assert done.ended == "memory"
    assert 100 < done.rss < 300
    assert time.perf_counter() - began < 10


def test_the_key_is_found_in_files(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "answers.db").write_bytes(b"\0\1" + KEY.encode() + b"\2")
    (tmp_path / "rows.jsonl").write_text("{}")
    assert trials._leaks(tmp_path) == ["cache/answers.db"]


def test_photos_are_unlike_each_other_and_the_same_each_time(tmp_path: Path) -> None:
    first = {file.read_bytes() for file in make_photos(tmp_path / "a", 10).iterdir()}
    assert len(first) == 10
    assert first == {file.read_bytes() for file in make_photos(tmp_path / "b", 10).iterdir()}
