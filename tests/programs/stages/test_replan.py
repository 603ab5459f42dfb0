"""When a model is asked about a replan, and how its decision is used."""

import dataclasses
from typing import Any

import pytest

from agenticiqa.programs.stages.evidence import what_is_missing
from agenticiqa.programs.stages.protocols import Decided, ReplanVerdict
from agenticiqa.programs.stages.replan import Replan, as_final, replan_judge
from agenticiqa.signatures.types import PARSING_FAILED, ExecutorOutput, SummarizerOutput
from support.engine import ScriptedEngine, scripted_backend
from support.fake_server import bad_json, by_stage
from support.nodes import RATE, evidence, plan

STANDS = {"need_replan": False, "replan_reason": ""}
AGAIN = {"need_replan": True, "replan_reason": "Measure the cup."}
DOUBTFUL = evidence("severe", 4.5)
ANSWER = SummarizerOutput(final_answer="B", quality_reasoning="Soft edges.")


def assessed(*decisions: Any) -> tuple[Replan, ScriptedEngine]:
    backend, engine = scripted_backend(by_stage({"decision": list(decisions)}))
    return Replan(replan_judge(backend=backend)), engine


def verdict(
    replan: Replan, found: ExecutorOutput = DOUBTFUL, *, iteration: int = 0, **flags: bool
) -> ReplanVerdict | None:
    """Return the verdict as the program requests it; ``None`` without a request."""
    needed = replan.needs_verdict(plan(**flags), found, iteration, 2, True)
    return replan.verdict(RATE, plan(**flags), found) if needed else None


def test_a_model_is_asked_about_a_doubt() -> None:
    replan, engine = assessed(AGAIN)
    assert verdict(replan) == ReplanVerdict(["Measure the cup."])
    assert len(engine.requests) == 1
    replan, _ = assessed(STANDS)
    assert verdict(replan) == ReplanVerdict([])


@pytest.mark.parametrize(
    ("found", "iteration", "flags"),
    [
        (evidence("moderate", 4.5), 0, {}),
        (DOUBTFUL, 2, {}),
        (DOUBTFUL.model_copy(update={"quality_scores": None}), 0, {"measure": True}),
    ],
    ids=["no doubt", "the limit is reached", "a score is missing"],
)
def test_no_model_is_asked_without_a_doubt_to_decide(
    found: ExecutorOutput, iteration: int, flags: dict[str, bool]
) -> None:
    replan, engine = assessed(AGAIN)
    assert verdict(replan, found, iteration=iteration, **flags) is None
    assert engine.requests == []


def test_offline_no_model_is_asked_about_doubts() -> None:
    assert verdict(Replan()) is None
    assert Replan().verdict(RATE, plan(), DOUBTFUL) == ReplanVerdict()


def test_rejected_decisions_are_in_the_verdict() -> None:
    for answers, reasons, rejected in (
        ((bad_json(), AGAIN), ["Measure the cup."], 1),
        ((bad_json(), STANDS), [], 1),
        ((bad_json(),), (), 3),
    ):
        given = assessed(*answers)[0].verdict(RATE, plan(), DOUBTFUL)
        assert given.reasons == reasons
        assert [(key, len(why)) for key, why in given.rejected_answers.items()] == [("replan", rejected)]


def decide(
    found: ExecutorOutput, given: ReplanVerdict, iteration: int = 0, result: SummarizerOutput = ANSWER
) -> Decided:
    decided: Decided = Replan()(
        plan=plan(), evidence=found, result=result, verdict=given, iteration=iteration, max_iterations=2, can_add=True
    )
    return decided


REJECTED = {"replan": ["empty"]}


@pytest.mark.parametrize(
    ("found", "given", "iteration", "reason"),
    [
        (DOUBTFUL, ReplanVerdict(["Measure the cup."], REJECTED), 0, "Measure the cup."),
        (DOUBTFUL, ReplanVerdict(["Measure the cup."], REJECTED), 1, "Measure the cup."),
        (DOUBTFUL, ReplanVerdict(["Measure the cup."], REJECTED), 2, None),
        (DOUBTFUL, ReplanVerdict((), REJECTED), 0, None),
    ],
)
def test_a_reason_requests_a_replan_until_the_limit(
    found: ExecutorOutput, given: ReplanVerdict, iteration: int, reason: str | None
) -> None:
    decided = decide(found, given, iteration)
    assert (decided.result.need_replan, decided.result.replan_reason) == (reason is not None, reason)
    assert decided.result.final_answer == "B"
    assert decided.rejected_answers == REJECTED


EVERYTHING = {"analyse": True, "measure": True}


@pytest.mark.parametrize("failed", ["distortion_detection", "distortion_analysis", "tool_selection"])
def test_a_sub_task_that_failed_requests_no_replan(failed: str) -> None:
    """A new plan would not make the model's answers usable; what is missing is missing because of it."""
    missing = {"quality_scores": {}} if failed == "tool_selection" else {"distortion_analysis": None}
    found = evidence().model_copy(update={**missing, "failures": {failed: "no usable answer in 3 attempts"}})
    for judge in (None, replan_judge(backend=scripted_backend(by_stage({}))[0])):
        replan = Replan(judge)
        assert not replan.needs_verdict(plan(**EVERYTHING), found, 0, 2, True)
        decided = replan(
            plan=plan(**EVERYTHING),
            evidence=found,
            result=ANSWER,
            verdict=ReplanVerdict(),
            iteration=0,
            max_iterations=2,
            can_add=True,
        )
        assert decided.result == ANSWER
    assert what_is_missing(found).endswith(f"The model gave no usable answer for: {failed.replace('_', ' ')}.")


def test_the_reason_stays_in_a_result_that_is_final_without_a_further_plan() -> None:
    asking = ANSWER.model_copy(
        update={"need_replan": True, "replan_reason": "Missing tool scores for sky; Look again."}
    )
    expected = "Soft edges. The evidence is still insufficient: Missing tool scores for sky; Look again."
    final = as_final(asking)
    assert (final.quality_reasoning, final.need_replan, final.replan_reason) == (expected, False, None)
    assert as_final(asking.model_copy(update={"quality_reasoning": expected})).quality_reasoning == expected, "once"
    at_limit = decide(DOUBTFUL, ReplanVerdict(["Look at the sky."]), 2).result
    assert at_limit.quality_reasoning == "Soft edges. The evidence is still insufficient: Look at the sky."


def test_an_unanswered_result_requests_no_replan() -> None:
    failed = SummarizerOutput(final_answer="Unable to determine", quality_reasoning=PARSING_FAILED)
    decided = decide(DOUBTFUL, ReplanVerdict(["Measure the cup."], REJECTED), result=failed)
    assert decided == Decided(failed, REJECTED)


def test_results_cannot_be_changed_later() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ReplanVerdict().reasons = ("another",)  # type: ignore[misc]
