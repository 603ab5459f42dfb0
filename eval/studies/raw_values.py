"""A tool's value for a labeled image, on the tool's own scale."""

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.tools import Tool
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
