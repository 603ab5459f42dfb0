"""Isolated pixels and halos of an image, without a reference: what no metric of its own measures.

Each statistic is one finite float, of the parts of an image of any size from one pixel up.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import Plane, gaussian
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import Luma, luma_parts

IMPULSE_HEIGHT = 40  # gray levels
PROFILE_REACH = 8  # pixels to either side of an edge
MARGIN = PROFILE_REACH + 2  # pixels along the border in which no profile begins
MOST_PROFILES = 2000


@shared
def isolated_pixels(image: Measurable) -> float:
    """Return the share of pixels over 40 gray levels above or below all eight neighbors: impulse noise. 0 to 0.25."""
    parts = luma_parts(image)
    isolated = sum(len(pixels) for part in parts if min(part.shape) >= 3 for pixels in isolated_in(part[None]))
    return isolated / sum(part.size for part in parts)


def isolated_in(planes: NDArray[np.float32]) -> list[NDArray[np.intp]]:
    """Return the plane numbers of all pixels over 40 gray levels above all neighbors, and of those below all.

    ``planes`` is (N, h, w), both sides at least 3. Few pixels differ this much from the two beside them; the six
    other neighbors are read only for these.
    """
    height, width = planes.shape[1:]
    inner, left, right = planes[:, 1:-1, 1:-1], planes[:, 1:-1, :-2], planes[:, 1:-1, 2:]
    others = [down * width + across for down in (-1, 1) for across in (-1, 0, 1)]
    flat, isolated = planes.ravel(), []
    for extreme in (np.maximum, np.minimum):
        candidates = np.flatnonzero(_stands_out(inner, extreme(left, right), extreme))
        plane, row, column = np.unravel_index(candidates, inner.shape)
        at = (plane * height + row + 1) * width + column + 1
        isolated.append(plane[_stands_out(flat[at], extreme.reduce([flat[at + step] for step in others]), extreme)])
    return isolated


def _stands_out(values: Luma, around: Luma, extreme: np.ufunc) -> NDArray[np.bool_]:
    away = values - around
    return away > IMPULSE_HEIGHT if extreme is np.maximum else away < -IMPULSE_HEIGHT


@shared
def overshoot(image: Measurable) -> float:
    """Return how far the values beside a typical strong edge go beyond its two sides, as a share of the edge's height.

    The halo that sharpening leaves. Profiles across the steepest edges are compared with their own ends, 4 to 8
    pixels away; the median over the edges of overshoot plus undershoot. 0 without halos (or without edges) to about 3;
    texture beside the edges counts too, so that photos lie between 0 and 1.8.
    """
    offsets = np.arange(-PROFILE_REACH, PROFILE_REACH + 0.25, 0.5)
    profiles = _profiles([part for part in luma_parts(image) if min(part.shape) >= 4 * PROFILE_REACH], offsets)
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
