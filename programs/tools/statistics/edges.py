"""The strongest edges of an image, without a reference: how steep they are, and whether they have halos.

Each function takes the luma, 0..255, of one or more parts of an image, float32 arrays (h, w) of any size from one pixel
up, and returns one finite float for all of them together.
"""

from collections.abc import Sequence

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import Plane, gaussian
from agenticiqa.programs.tools.statistics.parts import Luma

CELL = 3  # pixels; edges are searched in windows of 3 x 3 cells
PROFILE_REACH = 8  # pixels to either side of an edge
MARGIN = PROFILE_REACH + 2  # pixels along the border in which no profile begins
MOST_PROFILES = 2000


def edge_sharpness(parts: Sequence[Luma]) -> float:
    """Return the steepest step of a typical strong edge as a share of its height: 0 (no edge) to 1 (one pixel wide).

    The reciprocal of an edge width in pixels, after Marziliano, Dufaux, Winkler, Ebrahimi, "A no-reference perceptual
    blur metric", ICIP 2002: the largest difference of neighbors over the range of values, in windows of 9 x 9 pixels,
    the median over the fifth of windows with the largest range. It does not depend on contrast. Sharp photos lie
    between 0.48 and 0.78; sharpening drives it to 1.
    """
    windows = [_windows(part) for part in parts if min(part.shape) >= 2]
    if not windows:
        return 0.0
    steepest, height = (np.concatenate([plane.ravel() for plane in planes]) for planes in zip(*windows, strict=True))
    strong = height >= max(float(np.percentile(height, 80)), 2.0)
    if not strong.any():
        return 0.0
    return float(np.median(np.minimum(steepest[strong] / height[strong], 1.0)))


def overshoot(parts: Sequence[Luma]) -> float:
    """Return how far the values beside a typical strong edge go beyond its two sides, as a share of the edge's height.

    The halo that sharpening leaves. Profiles across the steepest edges are compared with their own ends, 4 to 8
    pixels away; the median over the edges of overshoot plus undershoot. 0 without halos (or without edges) to about 3;
    texture beside the edges counts too, so that photos lie between 0 and 1.8.
    """
    offsets = np.arange(-PROFILE_REACH, PROFILE_REACH + 0.25, 0.5)
    profiles = _profiles([part for part in parts if min(part.shape) >= 4 * PROFILE_REACH], offsets)
    if not len(profiles):
        return 0.0
    low, high = (np.median(profiles[:, far], axis=1) for far in (offsets <= -4, offsets >= 4))
    clear = high - low > 8
    if np.count_nonzero(clear) < 10:
        return 0.0
    shares = (profiles[clear] - low[clear, None]) / (high - low)[clear, None]
    over = shares[:, (offsets > 0) & (offsets <= 3)].max(axis=1) - 1
    under = -shares[:, (offsets < 0) & (offsets >= -3)].min(axis=1)
    return float(np.median(np.maximum(over, 0) + np.maximum(under, 0)))


def around(cells: Luma, extreme: np.ufunc) -> Luma:
    """Return the maximum or minimum of each cell and those that touch it."""
    ringed = np.pad(cells, 1, mode="edge")
    rows = extreme(extreme(ringed[:-2], ringed[1:-1]), ringed[2:])
    return extreme(extreme(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])


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


def _profiles(parts: Sequence[Luma], offsets: Plane) -> Plane:
    """Return the values at offsets, in pixels, across the steepest edges, from the dark to the bright side: (N, K)."""
    ridges = [_ridge(part) for part in parts]
    slopes = np.concatenate([np.zeros(0), *(ridge[0] for ridge in ridges)])
    wanted = min(MOST_PROFILES, max(len(slopes) // 5, 20), len(slopes))
    if not wanted:
        return np.zeros((0, len(offsets)))
    least = np.partition(slopes, -wanted)[-wanted]
    return np.concatenate(
        [_across(part, ridge[:, ridge[0] >= least], offsets) for part, ridge in zip(parts, ridges, strict=True)]
    )


def _ridge(part: Luma) -> Plane:
    """Return the largest gradients among 5 x 5 pixels: squared slope, row, column, slope down and right: (5, N)."""
    smooth = _smoothed(_smoothed(part).T).T
    down, right = _sobel(smooth), _sobel(smooth.T).T
    slope = down * down + right * right  # its first pixel is the part's pixel (4, 4)
    highest = _highest_of_five(_highest_of_five(slope).T).T
    # No profile may leave the part.
    border, (height, width) = MARGIN - 4, slope.shape
    inner = slope[border : height - border, border : width - border]
    peaks = (inner == highest[border - 2 : height - border - 2, border - 2 : width - border - 2]) & (inner > 0)
    row, column = np.divmod(np.flatnonzero(peaks), peaks.shape[1])  # several times faster than nonzero
    at = row + border, column + border
    return np.stack([slope[at], row + MARGIN, column + MARGIN, down[at], right[at]]).astype(float)


def _across(part: Luma, ridge: Plane, offsets: Plane) -> Plane:
    """Return the values, between pixels linearly, at the offsets along the gradient of each point of a ridge."""
    slope, row, column, down, right = ridge[..., None]
    steepness = np.sqrt(slope)
    y, x = row + down / steepness * offsets, column + right / steepness * offsets
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    y -= top
    x -= left
    values, width = part.ravel(), part.shape[1]
    at = top * width + left
    upper = values.take(at) * (1 - x) + values.take(at + 1) * x
    lower = values.take(at + width) * (1 - x) + values.take(at + width + 1) * x
    return upper * (1 - y) + lower * y


def _smoothed(plane: Luma) -> Luma:
    """Filter the columns with a Gaussian of 0.7 pixels where its seven weights lie inside: (h - 6, w) out."""
    weights, height = gaussian(7, 0.7).astype(np.float32), len(plane) - 6
    total = weights[3] * plane[3 : 3 + height]
    for above in range(3):
        total += weights[above] * (plane[above : above + height] + plane[6 - above : 6 - above + height])
    return total


def _sobel(plane: Luma) -> Luma:
    """Return the slope down the columns, smoothed across: (h - 2, w - 2) out."""
    step = plane[2:] - plane[:-2]
    slope = step[:, :-2] + step[:, 2:]
    slope += 2 * step[:, 1:-1]
    return slope


def _highest_of_five(plane: Luma) -> Luma:
    """Return the maximum of each five pixels down the columns: (h - 4, w) out."""
    pairs = np.maximum(plane[:-1], plane[1:])
    return np.maximum(np.maximum(pairs[:-3], pairs[2:-1]), plane[4:])
