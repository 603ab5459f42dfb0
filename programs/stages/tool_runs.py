"""Select the tools of a run, and run them on the whole image or on a region."""

import math
from collections.abc import Collection, Mapping, Sequence

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.fusion.tool_mean import equal_weights, mean_weights
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.reference_check import recolored
from agenticiqa.programs.images.regions import SMALLEST, crop, grown
from agenticiqa.programs.stages.protocols import ToolSelection
from agenticiqa.programs.tools.tool import Tool, best_for, get_tool, run_tool
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL, Box, Distortions, ToolCall

# The lower score of these is 1.3 to 2.7 for swapped channels. Structure or brightness gives 3 to 5.
SEE_COLORS = ("SSIMULACRA2", "MDSI")


def applicable(toolbox: Mapping[str, Tool], image: LoadedImage, reference: LoadedImage | None) -> list[Tool]:
    """Return the full-reference tools with a reference, else the no-reference ones, if the image is large enough.

    A tool without a curve is only run if the question names it.
    """
    kind, side = "FR" if reference is not None else "NR", min(image.assessed.size)
    fitting = (tool for tool in toolbox.values() if tool.kind == kind and tool.smallest <= side)
    return [tool for tool in fitting if tool.curve is not None]


def applicable_tools(toolbox: Mapping[str, Tool], image: LoadedImage, reference: LoadedImage | None) -> list[Tool]:
    """Return the applicable tools that may rate the image's quality.

    If red and blue of the reference are swapped, return only the metric that detects this best.
    """
    tools = applicable(toolbox, image, reference)
    if reference is None or not recolored(image, reference):
        return tools
    runs = [
        (call.calibrated, tool)
        for tool in tools
        if tool.name in SEE_COLORS
        and (call := run_tool(tool, image, reference, region=GLOBAL, distortion=OVERALL)).calibrated is not None
    ]
    return [min(runs, key=lambda run: run[0])[1]] if runs else tools


def refuse_inapplicable_tools(names: list[str], toolbox: Mapping[str, Tool], reference: LoadedImage | None) -> None:
    """Raise ToolError if a named tool is unknown, or needs a reference that is missing."""
    for name in names:
        if get_tool(name, toolbox).kind == "FR" and reference is None:
            raise ToolError(f"{name} needs a pristine reference; give one with --reference")


def named_tools(tools: Sequence[Tool], distortions: Distortions) -> ToolSelection:
    """Return the tools that the question names, by region and by the distortion that each one estimates.

    A tool for overall quality is listed under every distortion found, or "Overall"; a tool for one property under it.
    The first tool has the distortion's own name as its key, every further one ``"<distortion> (<tool>)"``.
    """
    selected: ToolSelection = {}
    for region, names in distortions.items():
        row = selected.setdefault(region, {})
        for tool in tools:
            subjects = names if tool.rates_overall else []
            for subject in subjects or [tool.measures]:
                row[f"{subject} ({tool.name})" if subject in row else subject] = tool.name
    return selected


def table_choice(distortions: Distortions, tools: Sequence[Tool]) -> ToolSelection:
    """Return for each distortion the tool with the highest measured correlation, else the best tool overall."""
    return {
        region: {name: tool.name for name in names if (tool := best_for(name, tools))}
        for region, names in distortions.items()
    }


def with_overall(
    selected: ToolSelection, regions: Sequence[str], rating: Sequence[Tool], *, but: Collection[str] = ()
) -> ToolSelection:
    """Return the selection with the tools ``rating`` added to each region; the first has the key "Overall".

    The regions ``but`` keep their own tools alone.
    """
    keys = [OVERALL, *(f"{OVERALL} ({tool.name})" for tool in rating[1:])]
    own = {key: tool.name for key, tool in zip(keys, rating, strict=False)}
    rows = {region: {**selected.get(region, {}), **own} for region in regions}
    return {region: dict(selected[region]) if region in but else row for region, row in rows.items()}


def weighted(
    calls: Sequence[ToolCall],
    toolbox: Mapping[str, Tool],
    *,
    has_reference: bool,
    plain: Collection[str] = (),
    single_properties: bool = False,
) -> list[ToolCall]:
    """Return the calls with their weights in the mean of their region; calls without a score have none.

    The scores of the regions ``plain`` count equally, across regions, too: their weights are shares of the whole mean.
    ``single_properties`` is whether they include those of tools that estimate a single property.
    """
    weights: dict[str, dict[str, float]] = {}
    for region in dict.fromkeys(call.region for call in calls):
        scored = [toolbox[call.tool] for call in calls if call.region == region and call.calibrated is not None]
        if region in plain:
            weights[region] = equal_weights(scored, single_properties=single_properties)
        else:
            weights[region] = mean_weights(scored, has_reference=has_reference)
    total = sum(math.fsum(row.values()) for row in weights.values()) if plain else 1.0
    shares = {region: {tool: w / (total or 1.0) for tool, w in row.items()} for region, row in weights.items()}
    return [call.model_copy(update={"weight": shares[call.region].get(call.tool)}) for call in calls]


def run_in_box(
    tool: Tool, image: LoadedImage, reference: LoadedImage | None, box: Box | None, *, region: str, distortion: str
) -> ToolCall:
    """Run one tool on the assessed part of the image, or on a box, enlarged to the tool's minimum side.

    The reference is cropped in the same way. A failure is recorded in the ToolCall, never raised.
    """
    if box is None:
        call = run_tool(tool, image.assessed, reference, region=region, distortion=distortion)
        return call.model_copy(update={"box": image.assessed_box}) if image.assessed_box else call
    smallest = max(SMALLEST, tool.smallest)
    part, pristine = crop(image, box, smallest), crop(reference, box, smallest) if reference else None
    call = run_tool(tool, part, pristine, region=region, distortion=distortion)
    return call.model_copy(update={"box": grown(box, image.size, smallest)})


def scores(selected: ToolSelection, tool_log: Sequence[ToolCall]) -> dict[str, dict[str, tuple[str, float]]]:
    """Return by region and distortion each selected tool with its calibrated score, if it has one."""
    measured = {(call.region, call.tool): call.calibrated for call in tool_log if call.calibrated is not None}
    return {
        region: {
            distortion: (tool, measured[region, tool])
            for distortion, tool in tools.items()
            if (region, tool) in measured
        }
        for region, tools in selected.items()
    }
