"""Build the program without one of its parts, for ablations.

==========  ============================================================================================================
planner     one fixed plan for every question: the whole image, all four sub-tasks; no model plans
detection   no distortions are detected; those that the question names stay
analysis    distortions get no severity, and damaged parts are not searched for
replan      the first evidence is final
regions     the whole image only: no region of the question's, no damaged part
==========  ============================================================================================================

``estimate_without`` gives the cost of a run without a part. Unchanged requests of the remaining parts are answered
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

NOT_ASKED: dict[Part, set[str]] = {  # stages of an estimate that are removed with a part
    "planner": {"planner"},
    "detection": {"distortion_detection"},
    "analysis": {"distortion_analysis", "replan"},  # only the analysis causes another round
    "replan": {"replan"},
    "regions": {"localization"},
}


def parts_named(text: str) -> tuple[Part, ...]:
    """Return the parts in a list such as "planner,replan", in ``PARTS`` order. Raises UserError for unknown names."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in PARTS]:
        raise UserError(f"--ablate: unknown part {unknown[0]!r}: use {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in wanted)


def config_without(config: Config, part: Part) -> Config:
    """Return the configuration of the program without a part, if a configuration can remove it; else unchanged."""
    if part == "planner":
        return config.model_copy(update={"planner": PlannerConfig()})
    return config.model_copy(update={"max_replan_iterations": 0}) if part == "replan" else config


def program_without(config: Config, part: Part) -> AgenticIQA:
    """Return the program that a configuration describes, without a part. Raises as ``AgenticIQA.from_config`` does."""
    program = AgenticIQA.from_config(config_without(config, part))
    if part == "planner":
        program.planner = FixedPlanner()
    elif part != "replan":
        program.planner = ChangedPlan(program.planner, part)
    if part == "regions" and isinstance(program.executor, Executor):
        program.executor.analyze = WholeImageAnalyst(program.executor.analyze)
    return program


def estimate_without(config: Config, part: Part, jobs: Iterable[Job]) -> Estimate:
    """Return the cost of another assessment without a part, like ``estimate``, without deducting cached requests."""
    found = estimate(config_without(config, part), jobs)
    return replace(found, stages=[row for row in found.stages if row.stage not in NOT_ASKED[part]])


def plan_without(plan: PlannerOutput, part: Part) -> PlannerOutput:
    """Return the plan without a part's sub-tasks."""
    if part == "detection":
        return plan.model_copy(update={"plan": plan.plan.model_copy(update={"distortion_detection": False})})
    if part == "analysis":
        return plan.model_copy(update={"plan": plan.plan.model_copy(update={"distortion_analysis": False})})
    if part == "regions":
        named = dict.fromkeys(name for names in (plan.distortions or {}).values() for name in names)
        return plan.model_copy(update={"query_scope": GLOBAL, "distortions": {GLOBAL: [*named]} if named else None})
    return plan


class FixedPlanner(StageModule):
    """A planner with the same plan for every question."""

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
    """A planner that removes a part's sub-tasks from the plan."""

    def __init__(self, planner: protocols.PlannerStage, part: Part) -> None:
        super().__init__()
        self.planner, self.part = planner, part

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``."""
        planned = self.planner(image=image, query=query, reference=reference, feedback=feedback)
        return replace(planned, plan=plan_without(planned.plan, self.part))


class WholeImageAnalyst(StageModule):
    """An analyst that returns no damaged parts."""

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
