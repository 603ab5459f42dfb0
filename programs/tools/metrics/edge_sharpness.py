"""EDGE-SHARPNESS: how steep the strongest edges of an image are. Higher is sharper."""

import numpy as np

from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import Luma, around, luma_parts
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import SHARPNESS

CELL = 3  # pixels; edges are searched in windows of 3 x 3 cells


@shared
def edge_sharpness(image: Measurable) -> float:
    """Return the steepest step of a typical strong edge as a share of the edge's height.

    The reciprocal of an edge width in pixels: the largest difference of neighbors over the range of values, in windows
    of 9 x 9 pixels, the median over the fifth of windows with the largest range. It does not depend on contrast;
    sharpening drives it to 1. An image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: after Marziliano, Dufaux, Winkler, Ebrahimi, "A no-reference perceptual blur metric", ICIP 2002.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 (no edge) to 1 (one pixel wide), higher is sharper. Sharp photos lie between 0.48 and 0.78.

    Raises:
        ToolError: The array is of another kind.
    """
    windows = [_windows(part) for part in luma_parts(image) if min(part.shape) >= 2]
    if not windows:
        return 0.0
    steepest, height = (np.concatenate([plane.ravel() for plane in planes]) for planes in zip(*windows, strict=True))
    strong = height >= max(float(np.percentile(height, 80)), 2.0)
    if not strong.any():
        return 0.0
    return float(np.median(np.minimum(steepest[strong] / height[strong], 1.0)))


def _windows(part: Luma) -> tuple[Luma, Luma]:
    """Return the steepest step and the range of values in each window of 3 x 3 cells; neighbors share six."""
    across, down = np.abs(part[:-1, 1:] - part[:-1, :-1]), np.abs(part[1:, :-1] - part[:-1, :-1])
    steepest = around(_cells(np.maximum(across, down), np.maximum), np.maximum)
    rows, columns = steepest.shape
    highest, lowest = (around(_cells(part, extreme), extreme) for extreme in (np.maximum, np.minimum))
    return steepest, (highest - lowest)[:rows, :columns]


def _cells(plane: Luma, extreme: np.ufunc) -> Luma:
    """Return the maximum or minimum of each cell of 3 x 3 pixels (fewer at the right and lower border)."""
    whole = np.pad(plane, [(0, -side % CELL) for side in plane.shape], mode="edge")
    rows = extreme(extreme(whole[::CELL], whole[1::CELL]), whole[2::CELL])
    return extreme(extreme(rows[:, ::CELL], rows[:, 1::CELL]), rows[:, 2::CELL])


TOOL = Tool(
    name="EDGE-SHARPNESS",
    kind="NR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    measures=SHARPNESS,
    description="How steep the strongest edges are.",
    source="width of edge profiles, after Marziliano et al. 2002, ICIP",
    cost_ms=6,
    measure=edge_sharpness,
    is_shared=True,
)
