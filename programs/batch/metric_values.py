"""A result with what every metric says of its image, so that images can be compared metric by metric."""

from collections.abc import Callable, Mapping
from typing import Any

from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.tool_runs import applicable
from agenticiqa.programs.tools.tool import Tool, run_tool
from agenticiqa.signatures.types import GLOBAL, OVERALL


def row_with_metrics(tools: Mapping[str, Tool], to_row: Callable[[Assessment], Row], result: Assessment) -> Row:
    """The row of a result and two keys more: ``size``, its width and height in pixels, and ``metrics``.

    ``metrics`` has the raw value and the unit of each full-reference tool where there is a reference that fits, else
    of each no-reference one; a metric that failed has ``None`` and its error.
    """
    check = result.reference_check
    reference = result.reference if check is not None and check.fits else None
    calls = [
        run_tool(tool, result.image, reference, region=GLOBAL, distortion=OVERALL)
        for tool in applicable(tools, result.image, reference)
    ]
    metrics: dict[str, dict[str, Any]] = {
        call.tool: {
            "raw": call.raw,
            "unit": call.unit,
            "higher_is_better": tools[call.tool].higher_is_better,
            "error": call.error,
        }
        for call in calls
    }
    return {**to_row(result), "size": list(result.image.size), "metrics": metrics}
