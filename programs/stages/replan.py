"""Decide whether to plan again: rules find gaps in the evidence, and a model decides about remaining doubts."""

import logging
from collections.abc import Sequence

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.evidence import contradictions, format_evidence, gaps, uncertainties
from agenticiqa.programs.stages.protocols import Decided, ReplanVerdict
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.replan import DecideReplan, Decision
from agenticiqa.signatures.types import PARSING_FAILED, ExecutorOutput, PlannerOutput, QueryType, SummarizerOutput

logger = logging.getLogger(__name__)

HISTORY_LIMIT = 10


class Replan(StageModule):
    """The stage that decides after each answer. Offline, without ``judge``, doubts are only noted in the answer."""

    def __init__(self, judge: CheckedPredict[Decision] | None = None) -> None:
        super().__init__()
        self.judge = judge

    def forward(
        self,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        result: SummarizerOutput,
        verdict: ReplanVerdict,
        iteration: int,
        max_iterations: int,
        can_add: bool,
    ) -> Decided:
        """See ``protocols.ReplanStage``."""
        if result.quality_reasoning == PARSING_FAILED:  # a new plan would not make the model's answer usable
            return Decided(result, verdict.rejected_answers)
        at_limit = iteration >= max_iterations
        is_final = at_limit or not can_add
        undecided = doubts(evidence) if self.judge and is_final else []  # the model does not decide in this case
        reason = "; ".join(gaps(plan, evidence) or verdict.reasons or undecided)
        if not reason:
            progress.no_replan(iteration, doubts(evidence))
            return Decided(result, verdict.rejected_answers)
        if can_add or at_limit:
            progress.replan(reason, iteration, max_iterations)
        else:
            progress.nothing_to_add(reason, iteration)
        if is_final:
            result = with_open_points(result, reason)
        else:
            result = result.model_copy(update={"need_replan": True, "replan_reason": reason})
        return Decided(result, verdict.rejected_answers)

    def needs_verdict(
        self, plan: PlannerOutput, evidence: ExecutorOutput, iteration: int, max_iterations: int, can_add: bool
    ) -> bool:
        """See ``protocols.ReplanStage``. Only doubts without a gap, and while planning again is still allowed."""
        undecided = self.judge is not None and doubts(evidence) and not gaps(plan, evidence)
        return bool(undecided) and can_add and iteration < max_iterations

    def verdict(self, query: str, plan: PlannerOutput, evidence: ExecutorOutput) -> ReplanVerdict:
        """See ``protocols.ReplanStage``. Without a usable decision of the model, there are no reasons to plan again."""
        if self.judge is None:
            return ReplanVerdict()
        rates = detect_query_type(query, plan.query_type) is QueryType.SCORING
        inputs = {
            "query": query,
            "plan": plan.model_dump_json(),
            "evidence": format_evidence(evidence, rates=rates),
            "doubts": "\n".join(doubts(evidence)),
        }
        try:
            reply = self.judge(inputs=inputs, evidence=progress.evidence_summary(evidence))
        except Unanswered as gave_up:
            progress.no_usable(gave_up.stage, "the model gave no usable decision", ", so the answer is final")
            return ReplanVerdict(rejected_answers=gave_up.rejected_answers)
        reasons = [reply.answer.replan_reason] if reply.answer.need_replan else []
        return ReplanVerdict(reasons, reply.rejected_answers)


def doubts(evidence: ExecutorOutput) -> list[str]:
    """Return doubts that rules find in the evidence but cannot decide: contradictions and stated uncertainty."""
    return [*contradictions(evidence), *uncertainties(evidence)]


def replan_judge(*, backend: Backend | None = None, attempts: int = 3) -> CheckedPredict[Decision]:
    """Return the predictor that asks a model to decide about doubtful evidence."""
    return CheckedPredict(DecideReplan, stage="replan", backend=backend, attempts=attempts)


def as_final(result: SummarizerOutput) -> SummarizerOutput:
    """Return the result without its replan request, because a new plan does the same; its reason becomes a caveat."""
    final = result.model_copy(update={"need_replan": False, "replan_reason": None})
    return with_open_points(final, str(result.replan_reason))


def with_open_points(result: SummarizerOutput, reason: str) -> SummarizerOutput:
    """Return the result with a caveat about the evidence that no plan completed, unless the reasoning has it."""
    reasoning = result.quality_reasoning
    missing = "; ".join(point for point in reason.rstrip(".").split("; ") if point not in reasoning)
    if not missing:
        return result
    caveat = f"The evidence is still insufficient: {missing}."
    return result.model_copy(update={"quality_reasoning": f"{reasoning} {caveat}"})


def remember(history: Sequence[str], iteration: int, reason: str) -> list[str]:
    """Return the history with the entry "iteration N: reason"; only the newest ten are kept, with a warning."""
    longer = [*history, f"iteration {iteration}: {reason}"]
    if len(longer) > HISTORY_LIMIT:
        logger.warning("replan: more than %d replans; the oldest entries of the history are dropped", HISTORY_LIMIT)
    return longer[-HISTORY_LIMIT:]
