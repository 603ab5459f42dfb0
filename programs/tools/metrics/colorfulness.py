"""COLORFULNESS: spread and strength of an image's opponent colors. Higher is more colorful."""

import math

import numpy as np

from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.tonal import tone_of
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import COLOR


@shared
def colorfulness(image: Measurable) -> float:
    """Return the spread and strength of an image's opponent colors.

    Source: Hasler and Süsstrunk, "Measuring colourfulness in natural images", SPIE 5007, 2003, on means of 8 x 8
    pixels.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 (gray) to about 190, higher is more colorful. The authors call 15 slightly, 33 moderately, 59 quite and 109
        extremely colorful.

    Raises:
        ToolError: The array is of another kind.
    """
    red, green, blue = np.moveaxis(tone_of(image).rgb, -1, 0)
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    spread = math.hypot(red_green.std(), yellow_blue.std())
    return float(spread + 0.3 * math.hypot(red_green.mean(), yellow_blue.mean()))


TOOL = Tool(
    name="COLORFULNESS",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 150.0),
    measures=COLOR,
    description="Mean and standard deviation of the opponent colors.",
    source="Hasler and Suesstrunk 2003, SPIE 5007",
    cost_ms=1,
    measure=colorfulness,
    is_shared=True,
)
