"""What a run records of its stages: time by stage over all iterations, and why answers were rejected."""

import time

import pytest

from agenticiqa.programs.result import RunRecord
from agenticiqa.programs.stages.flow import Flow, call, run
from agenticiqa.programs.stages.protocols import Verdict


def stage(seconds: float, **rejected: list[str]) -> Flow[Verdict]:
    yield from call(time.sleep, seconds)
    return Verdict(("a reason",), rejected)


def failing() -> Flow[Verdict]:
    yield from call(time.sleep, 0.01)
    raise LookupError("lost")


def test_a_stage_gives_its_own_result() -> None:
    assert run(RunRecord().timed("planner", stage(0))) == Verdict(("a reason",))


def test_times_are_summed_over_the_iterations_and_the_last_one_is_kept() -> None:
    record = RunRecord()
    run(record.timed("planner", stage(0.2)))
    run(record.timed("planner", stage(0.01)))
    run(record.timed("executor", stage(0)))
    assert list(record.timings_ms) == list(record.seconds) == ["planner", "executor"]
    assert 210 <= record.timings_ms["planner"] < 10_000
    assert 0.01 <= record.seconds["planner"] < record.timings_ms["planner"] / 1000 - 0.2


def test_reasons_are_collected_by_the_stage_that_asked() -> None:
    record = RunRecord()
    run(record.timed("summarizer", stage(0, scoring=["empty", "cut off"])))
    run(record.timed("summarizer", stage(0, scoring=["no JSON"], answering=[])))
    run(record.timed("executor", stage(0)))
    assert record.rejected_answers == {"scoring": ["empty", "cut off", "no JSON"]}


def test_a_failed_stage_is_no_part_of_the_record() -> None:
    record = RunRecord()
    with pytest.raises(LookupError, match="lost"):
        run(record.timed("planner", failing()))
    assert (record.timings_ms, record.rejected_answers) == ({}, {})
