"""The Planner: a model reads the question (and, unless told not to, sees the images) and makes the plan."""

import json
import logging
from collections.abc import Collection, Mapping

import dspy
from pydantic import ValidationError

from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.errors import ToolError, Unanswered
from agenticiqa.programs.events import event
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.offline.language.planner import plan_question
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.flow import Call, Flow, Stage
from agenticiqa.programs.stages.plan_rules import enforce, violations
from agenticiqa.programs.tools.tool import Tool, find_tool
from agenticiqa.signatures.planner import PlanAnswer, plan_signature
from agenticiqa.signatures.types import PlannerOutput

logger = logging.getLogger(__name__)


class Planner(Stage):
    """Plans with a model.

    A plan that breaks the paper's rules is fed back to the model; after the last attempt the rules set the flags. When
    there is no usable plan at all, ``on_failure`` decides: ``"error"`` raises Unanswered, ``"rules"`` plans offline.
    """

    def __init__(
        self,
        toolbox: Mapping[str, Tool],
        *,
        backend: Backend | None = None,
        attempts: int = 3,
        sees_images: bool = True,
        on_failure: str = "error",
    ) -> None:
        super().__init__()
        signature = plan_signature(sees_images=sees_images)
        self.ask = CheckedPredict(signature, stage="planner", backend=backend, attempts=attempts)
        self.toolbox = toolbox
        self.sees_images = sees_images
        self.on_failure = on_failure

    def steps(
        self, image: LoadedImage, query: str, reference: LoadedImage | None, earlier: str
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``plan`` and ``retries``. ``earlier``: the plan before, and why it fell short."""
        inputs = {
            "available_tools": nameable(self.toolbox),
            "reference_given": reference is not None,
            "query": query,
            "earlier_plan": earlier or "none",
        }
        if self.sees_images:
            inputs |= prompt_inputs(image, reference)
        given, again = reference is not None, bool(earlier)

        def check(answer: PlanAnswer) -> None:
            refuse_unknown_tools(answer.required_tool, query, self.toolbox)
            try:
                wrong = violations(answer.to_plan(), reference_given=given, known_tools=self.toolbox, again=again)
            except ValidationError as error:
                raise Rejected("; ".join(item["msg"] for item in error.errors())) from error
            if wrong:
                raise Rejected("; ".join(wrong))

        try:
            reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        except Unanswered as gave_up:
            plan = self._without_the_model(gave_up, query, given, earlier)
            return dspy.Prediction(plan=plan, retries=gave_up.account)
        plan = enforce(reply.answer.to_plan(), reference_given=given, known_tools=self.toolbox, again=again)
        return dspy.Prediction(plan=plan, retries=reply.retries)

    def _without_the_model(self, gave_up: Unanswered, query: str, given: bool, earlier: str) -> PlannerOutput:
        if isinstance(gave_up.last_answer, PlanAnswer):
            told = event("fallback", stage=self.ask.stage, reason="the model keeps breaking the rules of planning")
            logger.warning(
                "planner: the model keeps breaking the rules of planning; the rules set the plan's flags", extra=told
            )
            return enforce(
                gave_up.last_answer.to_plan(), reference_given=given, known_tools=self.toolbox, again=bool(earlier)
            )
        if self.on_failure == "rules":
            told = event("fallback", stage=self.ask.stage, reason="no usable plan from the model")
            logger.warning("planner: no usable plan from the model; planning by rules", extra=told)
            return plan_question(query, reference_given=given, known_tools=self.toolbox, feedback=earlier)
        raise gave_up


def nameable(toolbox: Mapping[str, Tool]) -> str:
    """The tools that a question may name, one per line; what each is good for is the selector's to know."""
    return "\n".join(f"{card.name} ({card.kind})" for card in toolbox.values())


def refuse_unknown_tools(names: list[str], query: str, known: Collection[str]) -> None:
    """Raises ToolError when the user, and not merely the model, named a tool that there is none of."""
    for name in names:
        if not find_tool(name, known) and name.lower() in query.lower():
            raise ToolError(f"the question names an unknown tool {name!r}: known tools are {', '.join(known)}")


def earlier_plan(plan: PlannerOutput, reason: str) -> str:
    """What the Planner is told when it has to plan again."""
    return json.dumps({"earlier_plan": plan.model_dump(), "why_it_fell_short": reason}, ensure_ascii=False)
