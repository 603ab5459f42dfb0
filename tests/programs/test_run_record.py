"""What a run records of its stages: time by stage over all iterations, and why answers were rejected."""

import time

import pytest

from agenticiqa.programs.result import RunRecord
from agenticiqa.programs.stages.protocols import ReplanVerdict


def test_times_are_summed_over_the_iterations_and_the_last_one_is_kept() -> None:
    record = RunRecord()
    for name, seconds in (("planner", 0.2), ("planner", 0.01), ("executor", 0)):
        with record.timed(name):
            time.sleep(seconds)
    with pytest.raises(LookupError), record.timed("replan"):
        raise LookupError
    assert list(record.timings_ms) == list(record.seconds) == ["planner", "executor"]
    assert 210 <= record.timings_ms["planner"] < 10_000
    assert 0.01 <= record.seconds["planner"] < record.timings_ms["planner"] / 1000 - 0.2


def test_reasons_are_collected_by_the_stage_that_asked() -> None:
    record = RunRecord()
    result = ReplanVerdict((), {"scoring": ["empty", "cut off"]})
    assert record.noted(result) is result
    record.noted(ReplanVerdict((), {"scoring": ["no JSON"], "answering": []}))
    record.noted(ReplanVerdict())
    assert record.rejected_answers == {"scoring": ["empty", "cut off", "no JSON"]}
