"""RMS-CONTRAST: the standard deviation of an image's luma. Higher is more contrast."""

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import CONTRAST


def rms_contrast(image: RGB) -> float:
    """Return the standard deviation of luma.

    Source: Peli, "Contrast in complex images", JOSA A 7(10), 1990, on means of 8 x 8 pixels.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0..127.5 gray levels, higher is more contrast.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("rms_contrast", image)


TOOL = Tool(
    name="RMS-CONTRAST",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 127.5),
    measures=CONTRAST,
    description="Standard deviation of luma.",
    source="Peli 1990, JOSA A 7(10)",
    cost_ms=1,
    measure=SharedMeasure(rms_contrast, loaded_statistic("rms_contrast")),
    unit="gray levels",
)
