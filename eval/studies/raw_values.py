"""A tool's value for a labeled image, on the tool's own scale."""

import numpy as np

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.tools import Tool


def raw_value(tool: Tool, item: LabeledImage) -> float:
    """What a tool gives for a labeled image, compared with its reference if the tool is full-reference.

    Raises ToolError where the tool does not apply or gives no finite number, ImageError for a broken file.
    """
    image, reference = load_pair(item.image, item.reference if tool.kind == "FR" else None)
    raw = float(tool.measure(image.pixels, *([reference.pixels] if reference else [])))
    if not np.isfinite(raw):
        raise ToolError(f"{tool.name} gave {raw}, which is no measurement")
    return raw


def raw_or_none(tool: Tool, item: LabeledImage) -> float | None:
    """As ``raw_value``, but ``None`` where the tool does not apply."""
    try:
        return raw_value(tool, item)
    except ToolError:
        return None
