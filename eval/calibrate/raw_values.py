"""A tool's value for an image, on the tool's own scale, or by its curve on that of opinions."""

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.tool import raw_value


def raw_of(tool: Tool, item: LabeledImage) -> float:
    """What a tool gives for a labeled image, compared with its reference if the tool is full-reference.

    Raises ToolError as ``tool.raw_value`` does, and ImageError for a broken file.
    """
    image, reference = load_pair(item.image, item.reference if tool.kind == "FR" else None)
    return raw_value(tool, image.pixels, reference.pixels if reference else None)


def raw_or_none(tool: Tool, item: LabeledImage) -> float | None:
    """As ``raw_of``, but ``None`` where the tool does not apply."""
    try:
        return raw_of(tool, item)
    except ToolError:
        return None


def opinion_of(tool: Tool, *pixels: RGB) -> float:
    """What a tool gives for an image (and its reference, if it compares) on 1..5. Raises UserError without a curve."""
    if tool.calibration is None:
        raise UserError(f"{tool.name} has no curve to 1..5")
    return tool.calibration(tool.measure(*pixels))
