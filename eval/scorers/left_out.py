"""The program without one of its parts.

==========  ============================================================================================================
planner     one fixed plan for every question: the whole image, all four sub-tasks; no model plans
detection   no distortion is looked for; those that the question names stay
analysis    no severity is given to a distortion, and no damaged part is looked for
replan      the first evidence is final
regions     the whole image only: no region of the question's, no damaged part
==========  ============================================================================================================

What a part's absence costs is told before by ``estimate_without``; what the remaining parts ask as before is answered
from the cache.
"""

from collections.abc import Iterable
from dataclasses import replace

from agenticiqa.configs import Config, PlannerConfig
from agenticiqa.eval.names import PARTS, Part
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.cost import Estimate, estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages import protocols
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.protocols import Analyzed, Planned
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.types import GLOBAL, Boxes, Distortions, PlanFlags, PlannerOutput

NOT_ASKED: dict[Part, set[str]] = {  # the stages of an estimate that go with a part
    "planner": {"planner"},
    "detection": {"distortion_detection"},
    "analysis": {"distortion_analysis", "replan"},  # all doubts come from the analysis
    "replan": {"replan"},
    "regions": {"localization"},
}


def parts_named(text: str) -> tuple[Part, ...]:
    """The parts in a list such as "planner,replan", in the order of ``PARTS``. Raises UserError for any other name."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in PARTS]:
        raise UserError(f"no part is called {unknown[0]!r}: what can be left out is {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in wanted)


def config_without(config: Config, part: Part) -> Config:
    """The configuration of the program without a part, as far as a configuration says it."""
    if part == "planner":
        return config.model_copy(update={"planner": PlannerConfig()})
    return config.model_copy(update={"max_replan_iterations": 0}) if part == "replan" else config


def program_without(config: Config, part: Part) -> AgenticIQA:
    """The program that a configuration describes, without a part. Raises as ``AgenticIQA.from_config`` does."""
    program = AgenticIQA.from_config(config_without(config, part))
    if part == "planner":
        program.planner = FixedPlanner()
    elif part != "replan":
        program.planner = ChangedPlan(program.planner, part)
    if part == "regions" and isinstance(program.executor, Executor):
        program.executor.analyze = WholeImageAnalyst(program.executor.analyze)
    return program


def estimate_without(config: Config, part: Part, jobs: Iterable[Job]) -> Estimate:
    """The cost of judging anew without a part, as ``estimate`` gives it; what is cached is not taken off."""
    found = estimate(config_without(config, part), jobs)
    return replace(found, stages=[row for row in found.stages if row.stage not in NOT_ASKED[part]])


def plan_without(plan: PlannerOutput, part: Part) -> PlannerOutput:
    """The plan with a part's sub-tasks taken out."""
    if part == "detection":
        return plan.model_copy(update={"plan": plan.plan.model_copy(update={"distortion_detection": False})})
    if part == "analysis":
        return plan.model_copy(update={"plan": plan.plan.model_copy(update={"distortion_analysis": False})})
    if part == "regions":
        named = dict.fromkeys(name for names in (plan.distortions or {}).values() for name in names)
        return plan.model_copy(update={"query_scope": GLOBAL, "distortions": {GLOBAL: [*named]} if named else None})
    return plan


class FixedPlanner(StageModule):
    """The same plan for every question."""

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``."""
        plan = PlannerOutput(
            query_type="IQA",
            query_scope="Global",
            distortion_source="Inferred",
            distortions=None,
            reference_mode="Full-Reference" if reference else "No-Reference",
            required_tool=None,
            plan=PlanFlags(**dict.fromkeys(PlanFlags.model_fields, True)),
        )
        return Planned(plan)


class ChangedPlan(StageModule):
    """A planner whose plan has a part's sub-tasks taken out."""

    def __init__(self, planner: protocols.PlannerStage, part: Part) -> None:
        super().__init__()
        self.planner, self.part = planner, part

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``."""
        planned = self.planner(image=image, query=query, reference=reference, feedback=feedback)
        return replace(planned, plan=plan_without(planned.plan, self.part))


class WholeImageAnalyst(StageModule):
    """An analyst whose damaged parts are left out."""

    def __init__(self, analyst: protocols.AnalystStage) -> None:
        super().__init__()
        self.analyst = analyst

    def forward(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """See ``protocols.AnalystStage``."""
        analyzed = self.analyst(
            image=image, query=query, distortion_set=distortion_set, boxes=boxes, reference=reference
        )
        return replace(analyzed, local_damage={})
