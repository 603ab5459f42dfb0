"""RMS-CONTRAST: the standard deviation of an image's luma. Higher is more contrast."""

from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.tonal import tone_of
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import CONTRAST


@shared
def rms_contrast(image: Measurable) -> float:
    """Return the standard deviation of luma.

    Source: Peli, "Contrast in complex images", JOSA A 7(10), 1990, on means of 8 x 8 pixels.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0..127.5 gray levels, higher is more contrast.

    Raises:
        ToolError: The array is of another kind.
    """
    return float(tone_of(image).luma.std())


TOOL = Tool(
    name="RMS-CONTRAST",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 127.5),
    measures=CONTRAST,
    description="Standard deviation of luma.",
    source="Peli 1990, JOSA A 7(10)",
    cost_ms=1,
    measure=rms_contrast,
    is_shared=True,
    unit="gray levels",
)
