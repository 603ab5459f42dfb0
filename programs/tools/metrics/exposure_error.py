"""How far the exposure of an image is off."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.measures import take

DARKEST, BRIGHTEST = 80.0, 160.0  # photographs that look well exposed have their mean luma about here


def exposure_error(image: RGB) -> float:
    """The distance of the mean luma from 80..160, as a share of the way to black or white: 0 (well) to 1 (all lost).

    Night and snow scenes are off by intent; no pixel statistic can tell these from a wrong exposure. Raises ToolError
    for an array that is no uint8 RGB image.
    """
    mean = take("mean_luma", image)
    if mean < DARKEST:
        return (DARKEST - mean) / DARKEST
    return float(np.clip((mean - BRIGHTEST) / (255 - BRIGHTEST), 0, 1))
