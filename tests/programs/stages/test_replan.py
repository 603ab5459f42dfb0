"""When the judge is asked, and what is made of its decision."""

import dataclasses
from typing import Any

import pytest

from agenticiqa.programs.stages.flow import run
from agenticiqa.programs.stages.protocols import Decided, Verdict
from agenticiqa.programs.stages.replan import Replan, replan_judge
from agenticiqa.signatures.types import PARSING_FAILED, ExecutorOutput, SummarizerOutput
from support.engine import ScriptedEngine, scripted_backend
from support.fake_server import bad_json, by_stage
from support.nodes import RATE, evidence, plan

STANDS = {"need_replan": False, "replan_reason": ""}
AGAIN = {"need_replan": True, "replan_reason": "Measure the cup."}
DOUBTFUL = evidence("severe", 4.5)
ANSWER = SummarizerOutput(final_answer="B", quality_reasoning="Soft edges.")


def judged(*decisions: Any) -> tuple[Replan, ScriptedEngine]:
    backend, engine = scripted_backend(by_stage({"decision": list(decisions)}))
    return Replan(replan_judge(backend=backend)), engine


def verdict(replan: Replan, found: ExecutorOutput = DOUBTFUL, *, iteration: int = 0, **flags: bool) -> Verdict:
    return run(replan.verdict(RATE, plan(**flags), found, iteration, 2))


def test_the_judge_is_asked_about_a_doubt() -> None:
    replan, engine = judged(AGAIN)
    assert verdict(replan) == Verdict(["Measure the cup."])
    assert len(engine.requests) == 1
    replan, _ = judged(STANDS)
    assert verdict(replan) == Verdict([])


@pytest.mark.parametrize(
    ("found", "iteration", "flags"),
    [
        (evidence("moderate", 4.5), 0, {}),
        (DOUBTFUL, 2, {}),
        (DOUBTFUL.model_copy(update={"failures": {"tool_selection": "no answer"}}), 0, {}),
        (DOUBTFUL.model_copy(update={"quality_scores": None}), 0, {"measure": True}),
    ],
    ids=["no doubt", "the limit is reached", "a failure is a gap", "a score is missing"],
)
def test_the_judge_is_not_asked_where_there_is_nothing_to_decide(
    found: ExecutorOutput, iteration: int, flags: dict[str, bool]
) -> None:
    replan, engine = judged(AGAIN)
    assert verdict(replan, found, iteration=iteration, **flags) == Verdict()
    assert engine.requests == []
    assert verdict(Replan(), found, iteration=iteration, **flags) == Verdict()


def test_rejected_decisions_are_in_the_verdict() -> None:
    replan, _ = judged(bad_json(), AGAIN)
    assert verdict(replan).reasons == ["Measure the cup."]
    replan, _ = judged(bad_json(), STANDS)
    assert list(verdict(replan).rejected_answers) == ["replan"]
    replan, _ = judged(bad_json())
    assert [(key, len(reasons)) for key, reasons in verdict(replan).rejected_answers.items()] == [("replan", 3)]
    assert verdict(replan).reasons == ()


def decide(found: ExecutorOutput, given: Verdict, iteration: int = 0, result: SummarizerOutput = ANSWER) -> Decided:
    decided: Decided = Replan()(
        plan=plan(), evidence=found, result=result, verdict=given, iteration=iteration, max_iterations=2
    )
    return decided


REJECTED = {"replan": ["empty"]}


@pytest.mark.parametrize(
    ("found", "given", "iteration", "reason"),
    [
        (DOUBTFUL, Verdict(["Measure the cup."], REJECTED), 0, "Measure the cup."),
        (DOUBTFUL, Verdict(["Measure the cup."], REJECTED), 1, "Measure the cup."),
        (DOUBTFUL, Verdict(["Measure the cup."], REJECTED), 2, None),
        (DOUBTFUL, Verdict((), REJECTED), 0, None),
        (
            DOUBTFUL.model_copy(update={"failures": {"tool_selection": "no answer"}}),
            Verdict((), REJECTED),
            0,
            "Tool selection failed: no answer",
        ),
    ],
)
def test_a_reason_asks_for_a_new_plan_while_there_may_be_one(
    found: ExecutorOutput, given: Verdict, iteration: int, reason: str | None
) -> None:
    decided = decide(found, given, iteration)
    assert (decided.result.need_replan, decided.result.replan_reason) == (reason is not None, reason)
    assert decided.result.final_answer == "B"
    assert decided.rejected_answers == REJECTED


def test_a_model_that_cannot_answer_is_not_planned_for_again() -> None:
    failed = SummarizerOutput(final_answer="Unable to determine", quality_reasoning=PARSING_FAILED)
    decided = decide(DOUBTFUL, Verdict(["Measure the cup."], REJECTED), result=failed)
    assert decided == Decided(failed, REJECTED)


def test_results_cannot_be_changed_later() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Verdict().reasons = ("another",)  # type: ignore[misc]
