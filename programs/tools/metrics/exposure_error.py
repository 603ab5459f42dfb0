"""EXPOSURE-ERROR: how far the exposure of an image is off. Lower is better."""

from typing import TYPE_CHECKING

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.statistics.by_name import all_statistics, statistic
from agenticiqa.programs.tools.statistics.tonal import BLACK, WHITE, Tone
from agenticiqa.programs.tools.tool import SharedMeasure, Tool

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

DARKEST, BRIGHTEST = 80.0, 160.0  # mean luma of photos that look well exposed


def exposure_error(image: RGB) -> float:
    """The distance of the mean luma from 80..160, as a share of the way to black or white: 0 (good) to 1 (all lost).

    ``image`` is uint8 RGB, (H, W, 3), of any size. Night and snow scenes are dark and bright on purpose; no pixel
    statistic can tell these from a wrong exposure. Raises ToolError for anything else.
    """
    return _error(statistic("mean_luma", image))


def exposure_error_map(image: RGB) -> Plane:
    """Which blocks of 8 x 8 pixels are black or white: 1, else 0; (ceil(H / 8), ceil(W / 8)).

    Raises ToolError as ``exposure_error``.
    """
    check_image(image)
    levels = Tone(image).luma
    return ((levels <= BLACK) | (levels >= WHITE)).astype(float)


def _of_loaded(image: "LoadedImage") -> float:
    return _error(all_statistics(image)["mean_luma"])


def _error(mean_luma: float) -> float:
    if mean_luma < DARKEST:
        return (DARKEST - mean_luma) / DARKEST
    return float(np.clip((mean_luma - BRIGHTEST) / (255 - BRIGHTEST), 0, 1))


TOOL = Tool(
    name="EXPOSURE-ERROR",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 1.0),
    good_at=("Brightness change",),
    description="Distance of the mean luma from that of well exposed photographs.",
    source="mean luma against 80..160",
    cost_ms=1,
    measure=SharedMeasure(exposure_error, _of_loaded),
    map=exposure_error_map,
    map_end=1.0,
)
