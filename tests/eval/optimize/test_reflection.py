"""Which predictor GEPA improves next."""

from types import SimpleNamespace
from typing import Any

import dspy

from agenticiqa.eval.optimize.reflection import next_used

CANDIDATE = {"planner": "Plan it.", "score": "Rate it.\n    In full.", "answer": "Answer it."}


def trajectory(*instructions: str) -> dict[str, Any]:
    predictors = [dspy.Predict(dspy.Signature("image -> answer", text)) for text in instructions]
    return {"trace": [(predictor, {}, None) for predictor in predictors]}


def chosen(step: int, *trajectories: dict[str, Any]) -> list[str]:
    return next_used(SimpleNamespace(i=step), trajectories, [], 0, CANDIDATE)


def test_the_used_predictors_take_turns() -> None:
    used = trajectory("Plan it."), trajectory("Rate it.\nIn full.")
    assert [chosen(step, *used) for step in range(4)] == [["planner"], ["score"], ["planner"], ["score"]]


def test_where_none_was_used_all_take_turns() -> None:
    assert [chosen(step, trajectory()) for step in range(3)] == [["planner"], ["score"], ["answer"]]
