"""Whether to plan again: rules find the gaps, and a judge is asked only about doubts that rules cannot decide."""

import logging
from collections.abc import Sequence

import dspy

from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.events import event
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.evidence import contradictions, format_evidence, gaps, uncertainties
from agenticiqa.programs.stages.flow import Call, Flow, Stage
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.types import PARSING_FAILED, ExecutorOutput, PlannerOutput, SummarizerOutput

logger = logging.getLogger(__name__)

HISTORY_LIMIT = 10


class Replan(Stage):
    """Decides after each answer. Without a judge (offline) doubts are told in the answer, but do not replan."""

    def __init__(self, judge: CheckedPredict | None = None) -> None:
        super().__init__()
        self.judge = judge

    def steps(
        self,
        query: str,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        result: SummarizerOutput,
        iteration: int,
        max_iterations: int,
        verdict: dspy.Prediction | None = None,
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``result`` (with ``need_replan`` and ``replan_reason`` set) and ``retries``.

        ``verdict`` is the judge's (``verdict`` below) where it was asked before; else it is asked here.
        """
        if result.quality_reasoning == PARSING_FAILED:  # a model that cannot answer would not answer better again
            return dspy.Prediction(result=result, retries=verdict.retries if verdict else [])
        if verdict is None:
            verdict = yield from self.verdict(query, plan, evidence, iteration, max_iterations)
        reasons = gaps(plan, evidence) or verdict.reasons
        if not reasons:
            progress.stays(iteration, doubts(evidence))
            return dspy.Prediction(result=result, retries=verdict.retries)
        reason = "; ".join(reasons)
        progress.replans(reason, iteration, max_iterations)
        if iteration >= max_iterations:
            return dspy.Prediction(result=result, retries=verdict.retries)
        again = result.model_copy(update={"need_replan": True, "replan_reason": reason})
        return dspy.Prediction(result=again, retries=verdict.retries)

    def verdict(
        self, query: str, plan: PlannerOutput, evidence: ExecutorOutput, iteration: int, max_iterations: int
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``reasons`` to plan again as the judge sees them, and ``retries``.

        It is asked only about doubts that are no gaps, and while planning again is still allowed.
        """
        doubtful = doubts(evidence)
        if self.judge is None or not doubtful or gaps(plan, evidence) or iteration >= max_iterations:
            return dspy.Prediction(reasons=[], retries=[])
        inputs = {
            "query": query,
            "plan": plan.model_dump_json(),
            "evidence": format_evidence(evidence),
            "doubts": "\n".join(doubtful),
        }
        try:
            reply = yield Call(self.judge, {"inputs": inputs})
        except Unanswered as gave_up:
            told = event("fallback", stage="replan", reason="the judge gave no usable decision")
            logger.warning("replan: the judge gave no usable decision, so the answer stands", extra=told)
            return dspy.Prediction(reasons=[], retries=gave_up.account)
        reasons = [reply.answer.replan_reason] if reply.answer.need_replan else []
        return dspy.Prediction(reasons=reasons, retries=reply.retries)


def doubts(evidence: ExecutorOutput) -> list[str]:
    """What rules find doubtful in the evidence, but cannot decide about."""
    return [*contradictions(evidence), *uncertainties(evidence)]


def judge(*, backend: Backend | None = None, attempts: int = 3) -> CheckedPredict:
    """The judge that asks a model."""
    return CheckedPredict(DecideReplan, stage="replan", backend=backend, attempts=attempts)


def remember(history: Sequence[str], iteration: int, reason: str) -> list[str]:
    """The history with one more entry, "iteration N: reason"; the newest ten are kept, with a warning."""
    longer = [*history, f"iteration {iteration}: {reason}"]
    if len(longer) > HISTORY_LIMIT:
        logger.warning("replan: more than %d replans, the oldest entries of the history are dropped", HISTORY_LIMIT)
    return longer[-HISTORY_LIMIT:]
