"""The paper's rules for plans (arXiv 2509.26006, Appendix A.2): they complete a model's plan and make the offline plan.

The presence of a reference determines the reference mode. Query type, scope, distortion source and named tools
determine the four flags. A new plan, made because the evidence was insufficient, adds what ``stages.remedies`` names.
If it names nothing, the plan runs all sub-tasks except the detection of distortions that the question names.
"""

import logging
from collections.abc import Collection, Hashable
from typing import Literal

from agenticiqa.programs.tools.tool import find_tool
from agenticiqa.signatures.planner import PlanAnswer, WholePlanAnswer
from agenticiqa.signatures.types import GLOBAL, Distortions, PlanFlags, PlannerOutput, unique

logger = logging.getLogger(__name__)


def expected_flags(
    query_type: Literal["IQA", "Other"], has_regions: bool, explicit: bool, has_tools: bool, *, rates: bool = False
) -> PlanFlags:
    """Return which sub-tasks run: none for ``"Other"``; otherwise all are analyzed, and only unnamed ones detected.

    ``rates`` is true if the question requests a rating. Rating a region needs tools, as rating the image does; the
    paper, the source of the last three columns, runs none in this case.

    ============  ====================  ==============  ==============
    tool named    region named          tool_selection  tool_execution
    ============  ====================  ==============  ==============
    yes           yes or no             no              yes
    no            yes, and not rated    no              no
    no            yes, and rated        yes             yes
    no            no                    yes             yes
    ============  ====================  ==============  ==============
    """
    is_iqa, measured = query_type == "IQA", rates or not has_regions
    return PlanFlags(
        distortion_detection=is_iqa and not explicit,
        distortion_analysis=is_iqa,
        tool_selection=is_iqa and not has_tools and measured,
        tool_execution=is_iqa and (has_tools or measured),
    )


def plan_by_rules(
    query_type: Literal["IQA", "Other"],
    query_scope: list[str] | Literal["Global"],
    distortions: Distortions | None,
    tools: list[str],
    *,
    is_explicit: bool,
    reference_given: bool,
    replanning: bool = False,
    rates: bool = False,
) -> PlannerOutput:
    """Return the plan for the parsed question; the rules set reference mode and flags.

    ``is_explicit`` is true if the question names the distortions. ``replanning`` is true if the evidence of an earlier
    plan was insufficient, so all applicable sub-tasks run. ``rates`` is as for ``expected_flags``.
    """
    flags = expected_flags(query_type, query_scope != GLOBAL, is_explicit, bool(tools), rates=rates)
    if replanning:
        everything = dict.fromkeys(PlanFlags.model_fields, True)
        flags = PlanFlags(**everything | {"distortion_detection": not is_explicit})
    return PlannerOutput(
        query_type=query_type,
        query_scope=query_scope,
        distortion_source="Explicit" if is_explicit else "Inferred",
        distortions=distortions or None,
        reference_mode="Full-Reference" if reference_given else "No-Reference",
        required_tool=tools or None,
        plan=flags,
    )


def plan_to_add(plan: PlannerOutput, distortions: Distortions, tools: list[str]) -> PlannerOutput:
    """Return the plan after a replan request: analyze these distortions by region, and run these tools there.

    Regions of the ``plan`` that are new are examined, too; the evidence of the earlier plans stays.
    """
    further = {region: names for region, names in plan.named_distortions.items() if region != GLOBAL}
    regions = unique([*distortions, *further])
    named = {region: names for region, names in {**further, **distortions}.items() if names}
    return PlannerOutput(
        query_type="IQA",
        query_scope=regions or "Global",
        distortion_source="Explicit" if named else "Inferred",
        distortions=named or None,
        reference_mode=plan.reference_mode,
        required_tool=tools or None,
        plan=PlanFlags(
            distortion_detection=False,
            distortion_analysis=bool(regions),
            tool_selection=False,
            tool_execution=bool(tools),
        ),
    )


def regions_to_examine(plan: PlannerOutput) -> list[str]:
    """Return the regions to detect distortions in: all, or those to analyze for which the question names none."""
    if plan.plan.distortion_detection:
        return plan.regions
    unnamed = [region for region, names in plan.named_distortions.items() if not names]
    return unnamed if plan.plan.distortion_analysis else []


def effect_of(plan: PlannerOutput) -> Hashable:
    """Return what a plan does: plans with equal effects give the same evidence.

    The effect has the kind of question, each region with the distortions that count, the sub-tasks that run, and the
    named tools. Distortions of a region that is examined do not count, because the detection replaces them. Selection
    has no effect beside named tools, nor has execution without tools. Order and case do not matter.
    """
    flags, examined = plan.plan, regions_to_examine(plan)
    named = plan.tools if flags.tool_execution else []
    selects = flags.tool_selection and not named
    return (
        plan.query_type,
        frozenset(
            (region.casefold(), None if region in examined else frozenset(names))
            for region, names in plan.named_distortions.items()
        ),
        flags.distortion_analysis,
        selects,
        flags.tool_execution and (selects or bool(named)),
        frozenset(name.casefold() for name in named),
    )


def violations(answer: PlanAnswer) -> list[str]:
    """Return one sentence for each violation that the rules cannot correct: the value and what it must be."""
    distortions = answer.by_region()
    regions = unique([*answer.query_scope, GLOBAL])
    among = ", ".join(map(repr, regions))
    wrong = [
        f"distortions has the region {region!r}, which is not in query_scope: they must be among {among}."
        for region in distortions
        if region not in regions
    ]
    if answer.distortion_source == "Explicit" and not distortions:
        wrong.append(
            "distortion_source is 'Explicit', but distortions is empty: "
            "it must list the distortions that the question names, or distortion_source must be 'Inferred'."
        )
    if isinstance(answer, WholePlanAnswer):
        steps = answer.plan
        if steps.tool_execution and not (steps.tool_selection or answer.required_tool):
            wrong.append("plan.tool_execution is true, but no tool is named and tool_selection is false.")
    return wrong


def enforce(
    answer: PlanAnswer,
    *,
    reference_given: bool,
    named_tools: Collection[str],
    replanning: bool = False,
    rates: bool = False,
) -> PlannerOutput:
    """Return the plan of a model's answer, after correcting what ``violations`` finds.

    Only ``named_tools``, the tools that the question names, stay required: a model may have read others in the image.
    They are spelled as in the toolbox. Distortions of regions outside the scope are dropped, or moved to the region
    that differs only in case. If a plan with explicit distortions lists none, its distortions become inferred.
    """
    distortions = _within_scope(answer)
    scope: list[str] | Literal["Global"] = "Global" if answer.query_scope == [GLOBAL] else answer.query_scope
    return plan_by_rules(
        answer.query_type,
        scope,
        distortions,
        unique(tool for name in answer.required_tool if (tool := find_tool(name, named_tools))),
        is_explicit=answer.distortion_source == "Explicit" and bool(distortions),
        reference_given=reference_given,
        replanning=replanning,
        rates=rates,
    )


def as_written(answer: WholePlanAnswer, by_rules: PlannerOutput) -> PlannerOutput:
    """Return the plan as the model wrote it, and log what the rules would have set."""
    written = PlannerOutput(
        query_type=answer.query_type,
        query_scope=by_rules.query_scope,
        distortion_source=answer.distortion_source,
        distortions=_within_scope(answer) or None,
        reference_mode=answer.reference_mode,
        required_tool=answer.required_tool or None,
        plan=answer.plan.as_flags(),
    )
    rules = by_rules.model_dump()
    if other := [key for key, value in written.model_dump().items() if value != rules[key]]:
        set_to = ", ".join(f"{key} to {rules[key]}" for key in other)
        logger.info("planner: the plan is the model's; the rules would have set %s", set_to)
    return written


def _within_scope(answer: PlanAnswer) -> Distortions:
    spelling = {region.casefold(): region for region in (*answer.query_scope, GLOBAL)}
    categories: Distortions = {}
    for key, distortions in answer.by_region().items():
        region = spelling.get(key.strip().casefold())
        if region:
            categories[region] = unique([*categories.get(region, []), *distortions])
    return categories
