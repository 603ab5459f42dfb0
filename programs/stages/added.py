"""Add the evidence for a new plan to that for the earlier plans of the same question.

What was valid stays, and a failure removes nothing. A new analysis of a distortion replaces the earlier one, and a note
says so if they differ. The mean of a rating keeps its tools: those of a new plan are shown beside it, unless a region
of the earlier plans has no score yet.
"""

from collections.abc import Mapping, Sequence

from agenticiqa.programs.stages.tool_runs import scores
from agenticiqa.signatures.types import DistortionAnalysis, ExecutorOutput, ToolCall, unique

Analyses = Mapping[str, Sequence[DistortionAnalysis]]
RESULTS = {  # the evidence of each sub-task that can fail
    "distortion_detection": "distortion_set",
    "distortion_analysis": "distortion_analysis",
    "tool_selection": "selected_tools",
}


def added(earlier: ExecutorOutput, new: ExecutorOutput) -> ExecutorOutput:
    """Return both as one."""
    calls = {(call.region, call.tool): call for call in earlier.tool_log if call.raw is not None}
    calls = {(call.region, call.tool): call for call in earlier.tool_log + new.tool_log} | calls
    distortions = {region: [*names] for region, names in (earlier.distortion_set or {}).items()}
    for region, names in (new.distortion_set or {}).items():
        distortions[region] = unique([*distortions.get(region, []), *names])
    analysis = _analysis(earlier.distortion_analysis or {}, new.distortion_analysis or {})
    selected = {region: {**tools} for region, tools in (earlier.selected_tools or {}).items()}
    for region, tools in (new.selected_tools or {}).items():
        kept = selected.setdefault(region, {})
        for key, tool in tools.items():
            if tool not in kept.values():
                kept[f"{key.partition(' (')[0]} ({tool})" if key in kept else key] = tool
    found = {
        "distortion_set": distortions if earlier.distortion_set or new.distortion_set else None,
        "distortion_analysis": analysis if earlier.distortion_analysis or new.distortion_analysis else None,
        "selected_tools": selected if earlier.selected_tools or new.selected_tools else None,
    }
    failed = {**earlier.failures, **new.failures}
    return ExecutorOutput.model_validate(
        {
            **found,
            "quality_scores": scores(selected, [*calls.values()]) or None,
            "tool_log": _weighted(earlier.tool_log, [*calls.values()]),
            "boxes": {**(earlier.boxes or {}), **(new.boxes or {})} or None,
            "measurements": {**(earlier.measurements or {}), **(new.measurements or {})} or None,
            "local_damage": {**(earlier.local_damage or {}), **(new.local_damage or {})} or None,
            "failures": {name: why for name, why in failed.items() if not found.get(RESULTS.get(name, ""))},
            "notes": unique([*earlier.notes, *new.notes, *_changes(earlier, new)]),
        }
    )


def _analysis(earlier: Analyses, new: Analyses) -> dict[str, list[DistortionAnalysis]]:
    regions = unique([*earlier, *new])
    return {
        region: [*{row.type: row for row in (*earlier.get(region, ()), *new.get(region, ()))}.values()]
        for region in regions
    }


def _changes(earlier: ExecutorOutput, new: ExecutorOutput) -> list[str]:
    """Return a sentence for each distortion whose second analysis differs from the first."""
    first = {
        (region, row.type): row.severity for region, rows in (earlier.distortion_analysis or {}).items() for row in rows
    }
    return [
        f"A second look at {row.type} in {region} found it {row.severity}, after {severity} at first."
        for region, rows in (new.distortion_analysis or {}).items()
        for row in rows
        if (severity := first.get((region, row.type), row.severity)) != row.severity
    ]


def _weighted(earlier: Sequence[ToolCall], calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls with weights as before; a new one counts only in a region that was measured without a score."""
    measured = {call.region for call in earlier}
    scored = {call.region for call in earlier if call.calibrated is not None}
    before = {(call.region, call.tool) for call in earlier}
    counts = (measured or {call.region for call in calls}) - scored
    return [
        call
        if (call.region, call.tool) in before or call.region in counts or call.weight is None
        else call.model_copy(update={"weight": 0.0})
        for call in calls
    ]
