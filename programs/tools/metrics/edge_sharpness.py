"""EDGE-SHARPNESS: how steep the strongest edges of an image are. Higher is sharper."""

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import SHARPNESS


def edge_sharpness(image: RGB) -> float:
    """Return the steepest step of a typical strong edge as a share of the edge's height.

    An image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: after Marziliano et al., ICIP 2002; see ``statistics.edges``.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 (no edge) to 1 (one pixel wide), higher is sharper. Sharp photos lie between 0.48 and 0.78.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("edge_sharpness", image)


TOOL = Tool(
    name="EDGE-SHARPNESS",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    measures=SHARPNESS,
    description="How steep the strongest edges are.",
    source="width of edge profiles, after Marziliano et al. 2002, ICIP",
    cost_ms=6,
    measure=SharedMeasure(edge_sharpness, loaded_statistic("edge_sharpness")),
)
