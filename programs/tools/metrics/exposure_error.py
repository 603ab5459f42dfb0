"""How far the exposure of an image is off."""

import numpy as np

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.measures import measure, take

DARKEST, BRIGHTEST = 80.0, 160.0  # photographs that look well exposed have their mean luma about here


def exposure_error(image: RGB) -> float:
    """The distance of the mean luma from 80..160, as a share of the way to black or white: 0 (well) to 1 (all lost).

    Night and snow scenes are off by intent; no pixel statistic can tell these from a wrong exposure. Raises ToolError
    for an array that is no uint8 RGB image.
    """
    return _off(take("mean_luma", image))


def exposure_error_of(image: LoadedImage) -> float:
    """As ``exposure_error``, from the mean luma that the image's memo keeps."""
    return _off(measure(image)["mean_luma"])


def _off(mean: float) -> float:
    if mean < DARKEST:
        return (DARKEST - mean) / DARKEST
    return float(np.clip((mean - BRIGHTEST) / (255 - BRIGHTEST), 0, 1))
