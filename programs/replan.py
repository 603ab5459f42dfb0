"""Whether to plan again: rules find the gaps, and a judge is asked only about doubts that rules cannot decide."""

import logging
from collections.abc import Sequence

import dspy

from agenticiqa.programs.ask import Asked
from agenticiqa.programs.backends import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.evidence import contradictions, format_evidence, gaps, uncertainties
from agenticiqa.programs.flow import Call, Flow, Stage
from agenticiqa.programs.telling import tell
from agenticiqa.programs.telling.events import event
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.types import PARSING_FAILED, ExecutorOutput, PlannerOutput, SummarizerOutput

logger = logging.getLogger(__name__)

HISTORY_LIMIT = 10


class Replan(Stage):
    """Decides after each answer. Without a judge (offline) doubts are told in the answer, but do not replan."""

    def __init__(self, judge: Asked | None = None) -> None:
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
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``result`` (with ``need_replan`` and ``replan_reason`` set) and ``retries``."""
        if result.quality_reasoning == PARSING_FAILED:
            return dspy.Prediction(
                result=result, retries=[]
            )  # a model that cannot answer would not answer better again
        reasons, retries = gaps(plan, evidence), []
        doubts = [*contradictions(evidence), *uncertainties(evidence)]
        if not reasons and doubts and self.judge is not None and iteration < max_iterations:
            inputs = {
                "query": query,
                "plan": plan.model_dump_json(),
                "evidence": format_evidence(evidence),
                "answer": result.model_dump_json(include={"final_answer", "quality_reasoning"}),
                "doubts": "\n".join(doubts),
            }
            try:
                reply = yield Call(self.judge, {"inputs": inputs})
                retries = reply.retries
                reasons = [reply.answer.replan_reason] if reply.answer.need_replan else []
            except Unanswered as gave_up:
                told = event("fallback", stage="replan", reason="the judge gave no usable decision")
                logger.warning("replan: the judge gave no usable decision, so the answer stands", extra=told)
                retries = gave_up.account
        if not reasons:
            tell.stays(iteration, doubts)
            return dspy.Prediction(result=result, retries=retries)
        reason = "; ".join(reasons)
        tell.replans(reason, iteration, max_iterations)
        if iteration >= max_iterations:
            return dspy.Prediction(result=result, retries=retries)
        again = result.model_copy(update={"need_replan": True, "replan_reason": reason})
        return dspy.Prediction(result=again, retries=retries)


def judge(*, backend: Backend | None = None, attempts: int = 3) -> Asked:
    """The judge that asks a model."""
    return Asked(DecideReplan, stage="replan", backend=backend, attempts=attempts)


def remember(history: Sequence[str], iteration: int, reason: str) -> list[str]:
    """The history with one more entry, "iteration N: reason"; the newest ten are kept, with a warning."""
    longer = [*history, f"iteration {iteration}: {reason}"]
    if len(longer) > HISTORY_LIMIT:
        logger.warning("replan: more than %d replans, the oldest entries of the history are dropped", HISTORY_LIMIT)
    return longer[-HISTORY_LIMIT:]
