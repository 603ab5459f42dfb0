"""COLORFULNESS: spread and strength of an image's opponent colors. Higher is more colorful."""

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import COLOR


def colorfulness(image: RGB) -> float:
    """Return the spread and strength of an image's opponent colors.

    Source: Hasler and Süsstrunk, SPIE 5007, 2003, on means of 8 x 8 pixels; see ``statistics.tonal``.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 (gray) to about 190, higher is more colorful. The authors call 15 slightly, 33 moderately, 59 quite and 109
        extremely colorful.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("colorfulness", image)


TOOL = Tool(
    name="COLORFULNESS",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 150.0),
    measures=COLOR,
    description="Mean and standard deviation of the opponent colors.",
    source="Hasler and Suesstrunk 2003, SPIE 5007",
    cost_ms=1,
    measure=SharedMeasure(colorfulness, loaded_statistic("colorfulness")),
)
