"""The Planner: a model reads the question (and, unless configured otherwise, sees the images) and makes the plan."""

import json
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial

from pydantic import ValidationError

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.events import event
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages import protocols
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.plan_rules import enforce, violations
from agenticiqa.programs.stages.protocols import Planned, RejectedAnswers
from agenticiqa.programs.stages.side_by_side import StageModule, side_by_side
from agenticiqa.programs.tools.tool import Tool, find_tool, unknown_tool
from agenticiqa.signatures.planner import PlanAnswer, plan_signature
from agenticiqa.signatures.types import PlannerOutput, QueryType

logger = logging.getLogger(__name__)

Prefetch = Callable[[LoadedImage, str, LoadedImage | None], None]  # image, query, reference


class Planner(StageModule):
    """Plans with a model.

    A plan that breaks the paper's rules is rejected with the reason; after the last attempt the rules set its flags.
    Without any usable plan, ``fallback`` (such as the offline planner) plans; without a fallback Unanswered is raised.
    ``prefetch`` runs while the model makes the first plan: it measures what will be needed whatever the plan.
    """

    def __init__(
        self,
        toolbox: Mapping[str, Tool],
        *,
        backend: Backend | None = None,
        attempts: int = 3,
        sees_images: bool = True,
        fallback: protocols.PlannerStage | None = None,
        prefetch: Prefetch | None = None,
    ) -> None:
        super().__init__()
        signature = plan_signature(sees_images=sees_images)
        self.ask: CheckedPredict[PlanAnswer] = CheckedPredict(
            signature, stage="planner", backend=backend, attempts=attempts
        )
        self.toolbox = toolbox
        self.sees_images = sees_images
        self.fallback = fallback
        self.prefetch = prefetch

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``. Raises ToolError when the question itself names an unknown tool."""
        reference_given, replanning = reference is not None, bool(feedback)
        rates = detect_query_type(query) is QueryType.SCORING

        def check(answer: PlanAnswer) -> None:
            refuse_unknown_tools(answer.required_tool, query, self.toolbox)
            try:
                wrong = violations(
                    answer.to_plan(),
                    reference_given=reference_given,
                    known_tools=self.toolbox,
                    replanning=replanning,
                    rates=rates,
                )
            except ValidationError as error:
                raise Rejected("; ".join(item["msg"] for item in error.errors())) from error
            if wrong:
                raise Rejected("; ".join(wrong))

        def enforced(answer: PlanAnswer, rejected: RejectedAnswers) -> Planned:
            plan = enforce(
                answer.to_plan(),
                reference_given=reference_given,
                known_tools=self.toolbox,
                replanning=replanning,
                rates=rates,
            )
            return Planned(plan, rejected)

        ask = partial(self.ask, inputs=self._inputs(image, query, reference, feedback), check=check)
        try:
            if self.prefetch and not feedback:
                reply, _ = side_by_side(ask, partial(self.prefetch, image, query, reference))
            else:
                reply = ask()
        except Unanswered as gave_up:
            rejected = {gave_up.stage: gave_up.account}
            if isinstance(gave_up.last_answer, PlanAnswer):
                self._log_fallback("the model keeps breaking the rules of planning", "the rules set the plan's flags")
                return enforced(gave_up.last_answer, rejected)
            if self.fallback is None:
                raise
            self._log_fallback("no usable plan from the model", "planning by rules")
            planned = self.fallback(image=image, query=query, reference=reference, feedback=feedback)
            return Planned(planned.plan, rejected)
        return enforced(reply.answer, reply.rejected_answers)

    def _inputs(
        self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str
    ) -> dict[str, LoadedImage | str | bool | None]:
        return {
            "available_tools": nameable(self.toolbox),
            "reference_given": reference is not None,
            "query": query,
            "feedback": feedback or "none",
            **(prompt_inputs(image, reference) if self.sees_images else {}),
        }

    def _log_fallback(self, reason: str, remedy: str) -> None:
        fields = event("fallback", stage=self.ask.stage, reason=reason)
        logger.warning("%s: %s; %s", self.ask.stage, reason, remedy, extra=fields)


def nameable(toolbox: Mapping[str, Tool]) -> str:
    """The tools that a question may name, one per line; their descriptions are for the Selector only."""
    return "\n".join(f"{tool.name} ({tool.kind})" for tool in toolbox.values())


def refuse_unknown_tools(names: list[str], query: str, known: Collection[str]) -> None:
    """Raises ToolError when the question itself, and not only the model's plan, names an unknown tool."""
    for name in names:
        if not find_tool(name, known) and name.lower() in query.lower():
            raise unknown_tool(name, known)


def feedback_on(plan: PlannerOutput, reason: str) -> str:
    """The ``feedback`` for the next plan, as JSON: the previous plan, and why its evidence was not sufficient."""
    return json.dumps({"previous_plan": plan.model_dump(), "why_not_sufficient": reason}, ensure_ascii=False)
