"""The paper's rules for plans (arXiv 2509.26006, Appendix A.2): they check a model's plan, and make the offline one.

Query type, scope, distortion source and named tools determine the four flags. When planning again, because the evidence
was not sufficient, a plan may switch on more than the rules do, but not the detection of distortions that the question
names.
"""

from collections.abc import Collection, Iterator
from typing import Literal

from agenticiqa.programs.tools.tool import find_tool
from agenticiqa.signatures.types import GLOBAL, PlanFlags, PlannerOutput, unique
from agenticiqa.signatures.vocabulary import Distortion


def expected_flags(
    query_type: Literal["IQA", "Other"], has_regions: bool, explicit: bool, has_tools: bool, *, rates: bool = False
) -> PlanFlags:
    """The sub-tasks that run: none for ``"Other"``; else named distortions are not detected, and all are analyzed.

    ``rates``: the question asks for a rating. That of a region needs tools as one of the image does; the paper, which
    has the last three columns, runs none then.

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


def widened(flags: PlanFlags, explicit: bool) -> PlanFlags:
    """The flags for planning again: all on, but for the detection of distortions that the question names."""
    return flags.model_copy(
        update={
            "distortion_detection": not explicit,
            "distortion_analysis": True,
            "tool_selection": True,
            "tool_execution": True,
        }
    )


def violations(
    plan: PlannerOutput,
    *,
    reference_given: bool,
    known_tools: Collection[str],
    replanning: bool = False,
    rates: bool = False,
) -> list[str]:
    """One sentence for each rule that the plan breaks, for the model that made it: what the value is and must be.

    ``replanning``: the evidence of the previous plan was not sufficient, so the flags may go beyond the rules.
    ``rates`` as for ``expected_flags``.
    """
    return [
        *_content_violations(plan, reference_given, known_tools),
        *_flag_violations(plan, known_tools, replanning, rates),
    ]


def enforce(
    plan: PlannerOutput,
    *,
    reference_given: bool,
    known_tools: Collection[str],
    replanning: bool = False,
    rates: bool = False,
) -> PlannerOutput:
    """The plan corrected so that ``violations`` finds nothing in it.

    Reference mode and flags are set, unknown tools dropped and known ones spelled as in the toolbox, distortions of
    regions outside the scope dropped (or moved to the region that differs in case only). A plan with explicit
    distortions that lists none becomes one with inferred distortions.
    """
    named = _within_scope(plan)
    explicit = plan.distortion_source == "Explicit" and bool(named)
    tools = unique(tool for name in plan.tools if (tool := find_tool(name, known_tools)))
    table = expected_flags(plan.query_type, plan.query_scope != GLOBAL, explicit, bool(tools), rates=rates)
    flags = table
    if replanning:
        most = widened(table, explicit).model_dump()
        flags = PlanFlags(
            **{
                name: must or (is_on and most[name])
                for (name, must), is_on in zip(table.model_dump().items(), plan.plan.model_dump().values(), strict=True)
            }
        )
    return PlannerOutput(
        query_type=plan.query_type,
        query_scope=plan.query_scope,
        distortion_source="Explicit" if explicit else "Inferred",
        distortions=named or None,
        reference_mode=_reference_mode(reference_given),
        required_tool=tools or None,
        plan=flags,
    )


def _reference_mode(given: bool) -> Literal["Full-Reference", "No-Reference"]:
    return "Full-Reference" if given else "No-Reference"


def _content_violations(plan: PlannerOutput, reference_given: bool, known_tools: Collection[str]) -> Iterator[str]:
    mode = _reference_mode(reference_given)
    if plan.reference_mode != mode:
        fact = "a reference image was given" if reference_given else "no reference image was given"
        yield f"reference_mode is {plan.reference_mode!r}, but {fact}: it must be {mode!r}."
    if unknown := [name for name in plan.tools if not find_tool(name, known_tools)]:
        tools, are = ", ".join(known_tools) or "none at all", "is" if len(unknown) == 1 else "are"
        yield (
            f"required_tool names {', '.join(map(repr, unknown))}, which {are} unknown: the known tools are {tools}; "
            "it is empty unless the question names one."
        )
    if plan.distortion_source == "Explicit" and not plan.distortions:
        yield (
            "distortion_source is 'Explicit', but distortions is null: "
            "it must list the distortions that the question names, or distortion_source must be 'Inferred'."
        )
    for region in plan.distortions or {}:
        if region not in (*plan.regions, GLOBAL):
            keys = ", ".join(repr(key) for key in unique([*plan.regions, GLOBAL]))
            yield f"distortions has the key {region!r}, which is not in query_scope: the keys must be among {keys}."


def _flag_violations(plan: PlannerOutput, known_tools: Collection[str], replanning: bool, rates: bool) -> Iterator[str]:
    regional, explicit = plan.query_scope != GLOBAL, plan.distortion_source == "Explicit"
    has_tools = any(find_tool(name, known_tools) for name in plan.tools)
    table = expected_flags(plan.query_type, regional, explicit, has_tools, rates=rates)
    allowed = (widened(table, explicit) if replanning else table).model_dump()
    why_detection = (
        "the question names the distortions" if explicit else "the question names no distortion, so they must be found"
    )
    why_tools = (
        "the question names the tools to run"
        if has_tools
        else "the question rates a region, which is measured"
        if regional and rates
        else "the question names regions and no tool"
        if regional
        else "the question names neither a region nor a tool"
    )
    reasons = {
        "distortion_detection": why_detection,
        "distortion_analysis": "every question about quality needs it",
        "tool_selection": why_tools,
        "tool_execution": why_tools,
    }
    for (name, must), is_on in zip(table.model_dump().items(), plan.plan.model_dump().values(), strict=True):
        if is_on not in (must, allowed[name]):
            why = reasons[name] if plan.query_type == "IQA" else "query_type is 'Other'"
            yield f"plan.{name} is {str(is_on).lower()}, but must be {str(not is_on).lower()}: {why}."


def _within_scope(plan: PlannerOutput) -> dict[str, list[Distortion]]:
    spelling = {region.casefold(): region for region in (*plan.regions, GLOBAL)}
    named: dict[str, list[Distortion]] = {}
    for key, distortions in (plan.distortions or {}).items():
        region = spelling.get(key.strip().casefold())
        if region:
            named[region] = list(dict.fromkeys([*named.get(region, []), *distortions]))
    return named
