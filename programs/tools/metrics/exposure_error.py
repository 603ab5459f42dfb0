"""EXPOSURE-ERROR: under- or overexposure of an image. Lower is better."""

import numpy as np
import scipy

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.tonal import WHITE, Tone, clipped_bright, mean_luma
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import BRIGHTNESS

DARKEST, BRIGHTEST = 80.0, 160.0  # mean luma of photos that look well exposed
AROUND = 8  # the map is of the means over this part of the longer side


@shared
def exposure_error(image: Measurable) -> float:
    """Return how far an image is under- or overexposed.

    The larger of two values: the distance of the mean luma from 80..160, as a share of the way to black or white, and
    the share of the image that is white, where content is lost. Black parts do not count, because objects may be black.
    Night and snow scenes are dark and bright on purpose; no pixel statistic can distinguish these from a wrong
    exposure.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0..1, lower is better: 0 is well exposed, 1 is all lost.

    Raises:
        ToolError: The array is of another kind.
    """
    return max(float(_error(mean_luma(image))), clipped_bright(image))


def exposure_error_map(image: RGB) -> Plane:
    """Return the exposure error of each block of 8 x 8 pixels: 0 to 1; (ceil(H / 8), ceil(W / 8)).

    A white block is lost: 1. Other blocks count only where the image as a whole is too dark or too bright, by the error
    around them. So all of a dark photo is marked, and a black object in a good photo is not. Raises ToolError as
    ``exposure_error``.
    """
    check_image(image)
    tone = Tone(image)
    whole = tone.mean
    around = scipy.ndimage.uniform_filter(tone.luma, -(-max(tone.luma.shape) // AROUND), mode="reflect")
    around = np.minimum(around, whole) if whole < DARKEST else np.maximum(around, whole) if whole > BRIGHTEST else whole
    return np.where(tone.luma >= WHITE, 1.0, _error(around))


def _error(level: "float | Plane") -> Plane:
    """Return the distance of luma from 80..160 as a share of the way to black or white."""
    return np.clip(np.maximum((DARKEST - level) / DARKEST, (level - BRIGHTEST) / (255 - BRIGHTEST)), 0, 1)


TOOL = Tool(
    name="EXPOSURE-ERROR",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 1.0),
    measures=BRIGHTNESS,
    description="Distance of the mean luma from that of well exposed photographs, or the share that is white.",
    source="mean luma against 80..160; share of white blocks",
    cost_ms=1,
    measure=exposure_error,
    is_shared=True,
    map=exposure_error_map,
    map_end=1.0,
)
