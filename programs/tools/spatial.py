"""Measures of one spatial distortion each, without a reference: blur, noise, impulses, blocking, sharpness, halos.

Every measure takes an image, uint8 RGB of shape (H, W, 3) and any size from one pixel up, and gives a finite float.
They compare neighbouring pixels, so they need the pixels as they are: scaling an image changes what they say. Raises
ToolError for anything that is not such an image.
"""

import numpy as np
import scipy

from agenticiqa.programs.tools.pixels import RGB, Plane, check_image, luma

BLUR_WINDOW = 11  # pixels, as in the paper of the blur effect
NOISE_BLOCK = 16  # pixels
IMPULSE_HEIGHT = 40  # grey levels
EDGE_CELL = 3  # pixels; an edge is looked for in windows of 3 x 3 cells
GRID = 8  # pixels, the block of JPEG
LARGEST_GRID_STEP = 12.0  # grey levels: a larger step is the scene's own edge
FAINT_STEP = 0.5  # grey levels: a grid of fainter steps is hardly seen, however smooth the image is otherwise
PROFILE_REACH = 8  # pixels to either side of an edge


def blur_extent(image: RGB) -> float:
    """How little the image changes when blurred again: 0 (it changes wholly) to 1 (already blurred, or flat).

    Crete, Dolmiere, Ladret, Nicolas, "The blur effect: perception and estimation with a new no-reference perceptual
    blur metric", SPIE 6492 (2007), on Sobel gradients, the worse of the two directions. Sharp photos lie between 0.2
    and 0.42. A flat image has no edge to judge and gives 0.
    """
    plane = _checked_luma(image)
    extents = [0.0]
    for axis in (0, 1):
        again = scipy.ndimage.uniform_filter1d(plane, BLUR_WINDOW, axis)
        before, after = (np.abs(scipy.ndimage.sobel(each, axis))[2:-1, 2:-1] for each in (plane, again))
        total = before.sum()
        if total > 1e-6:
            extents.append(float(np.minimum(before, after).sum() / total))
    return max(extents)


def noise_sigma(image: RGB) -> float:
    """Standard deviation of the noise in luma, in grey levels (0 to about 70; it reads about 10 % low).

    The residual is Immerkaer's ("Fast noise variance estimation", CVIU 64, 1996), which any plane or straight ramp
    leaves at zero. Its median magnitude is taken in blocks of 16 x 16 pixels, scaled as for a Gaussian, and the tenth
    percentile over the blocks that are not clipped is the estimate: the smoothest parts of the scene speak for it,
    texture does not. Clean photos stay below 2.4.
    """
    plane = _checked_luma(image)
    if min(plane.shape) < 3:
        return 0.0
    residual = np.abs(np.diff(np.diff(plane, 2, axis=0), 2, axis=1)) / 6
    inner = plane[1:-1, 1:-1]
    unclipped = _blocks((inner > 3) & (inner < 252)).mean(axis=1) > 0.9
    magnitudes = np.median(_blocks(residual), axis=1)
    if unclipped.any():
        magnitudes = magnitudes[unclipped]
    return float(np.percentile(magnitudes, 10) / 0.6745)


def isolated_pixels(image: RGB) -> float:
    """Share of pixels more than 40 grey levels above or below all eight neighbours: impulse noise. 0 to 0.25."""
    plane = _checked_luma(image)
    ring = np.ones((3, 3), bool)
    ring[1, 1] = False
    above = plane - scipy.ndimage.maximum_filter(plane, footprint=ring)
    below = scipy.ndimage.minimum_filter(plane, footprint=ring) - plane
    return float(np.mean(np.maximum(above, below) > IMPULSE_HEIGHT))


def blockiness(image: RGB) -> float:
    """How much stronger luma steps are on an 8 x 8 grid than between its lines: about 1 without blocking, up to 25.

    A step counts by what it exceeds its two neighbours in the row, up to 12 grey levels, in the spirit of Wang, Sheikh,
    Bovik, "No-reference perceptual quality assessment of JPEG compressed images", ICIP 2002. The grid may start
    anywhere, so crops of a compressed image show it too. JPEG of quality 60 gives 1.2 to 2.1, of quality 12 2 to 6.
    """
    plane = _checked_luma(image)
    return float(np.mean([_grid_ratio(plane), _grid_ratio(plane.T)]))


def edge_sharpness(image: RGB) -> float:
    """The steepest step of a typical strong edge as a share of the edge's height: 0 (no edge) to 1 (one pixel wide).

    The reciprocal of an edge width in pixels, after Marziliano, Dufaux, Winkler, Ebrahimi, "A no-reference perceptual
    blur metric", ICIP 2002: the largest difference of neighbours over the range of values, in windows of 9 x 9 pixels,
    the median over the fifth of windows with the largest range. It does not depend on contrast. Sharp photos lie
    between 0.48 and 0.78; sharpening drives it to 1.
    """
    plane = _checked_luma(image)
    if min(plane.shape) < 2:
        return 0.0
    step = np.maximum(np.abs(np.diff(plane, axis=1))[:-1], np.abs(np.diff(plane, axis=0))[:, :-1])
    steepest = scipy.ndimage.maximum_filter(_cells(step, np.maximum), 3)
    rows, columns = steepest.shape
    highest = scipy.ndimage.maximum_filter(_cells(plane, np.maximum), 3)
    lowest = scipy.ndimage.minimum_filter(_cells(plane, np.minimum), 3)
    height = (highest - lowest)[:rows, :columns]
    strong = height >= max(float(np.percentile(height, 80)), 2.0)
    if not strong.any():
        return 0.0
    return float(np.median(np.minimum(steepest[strong] / height[strong], 1.0)))


def overshoot(image: RGB) -> float:
    """How far the values beside a typical strong edge go beyond its two sides, as a share of the edge's height.

    The halo that sharpening leaves. Profiles across the steepest edges are compared with their own ends, 4 to 8
    pixels away; the median over the edges of overshoot plus undershoot. 0 without halos (or without edges) to about 3;
    texture beside the edges counts too, so that photos lie between 0 and 1.8.
    """
    plane = _checked_luma(image)
    if min(plane.shape) < 4 * PROFILE_REACH:
        return 0.0
    offsets, profiles = _edge_profiles(plane)
    low = np.median(profiles[:, offsets <= -4], axis=1)
    height = np.median(profiles[:, offsets >= 4], axis=1) - low
    clear = height > 8
    if np.count_nonzero(clear) < 10:
        return 0.0
    shares = (profiles[clear] - low[clear, None]) / height[clear, None]
    over = shares[:, (offsets > 0) & (offsets <= 3)].max(axis=1) - 1
    under = -shares[:, (offsets < 0) & (offsets >= -3)].min(axis=1)
    return float(np.median(np.maximum(over, 0) + np.maximum(under, 0)))


def _checked_luma(image: RGB) -> Plane:
    check_image(image)
    return luma(image)


def _blocks(plane: np.ndarray) -> np.ndarray:
    """The whole 16 x 16 blocks as rows, or the plane as one row where it is smaller than a block."""
    height, width = plane.shape
    if min(height, width) < NOISE_BLOCK:
        return plane.reshape(1, -1)
    rows, columns = height // NOISE_BLOCK, width // NOISE_BLOCK
    whole = plane[: rows * NOISE_BLOCK, : columns * NOISE_BLOCK]
    return whole.reshape(rows, NOISE_BLOCK, columns, NOISE_BLOCK).swapaxes(1, 2).reshape(rows * columns, -1)


def _cells(plane: Plane, extreme: np.ufunc) -> Plane:
    """The maximum or minimum of each cell of 3 x 3 pixels (fewer at the right and lower border)."""
    tops, lefts = np.arange(0, plane.shape[0], EDGE_CELL), np.arange(0, plane.shape[1], EDGE_CELL)
    return extreme.reduceat(extreme.reduceat(plane, tops, axis=0), lefts, axis=1)


def _grid_ratio(plane: Plane) -> float:
    """Mean excess step over the columns of the most prominent grid, over that of all other columns."""
    if plane.shape[1] < 2 * GRID + 3:
        return 1.0
    step = np.abs(np.diff(plane, axis=1))
    excess = np.clip(step[:, 1:-1] - (step[:, :-2] + step[:, 2:]) / 2, 0, LARGEST_GRID_STEP)
    by_column = excess.mean(axis=0)
    by_phase = np.array([by_column[phase::GRID].mean() for phase in range(GRID)])
    others = (by_phase.sum() - by_phase) / (GRID - 1)
    return float(np.max((by_phase + FAINT_STEP) / (others + FAINT_STEP)))


def _edge_profiles(plane: Plane) -> tuple[Plane, Plane]:
    """Offsets in pixels, (K,), and values across the steepest edges from the dark to the bright side, (N, K)."""
    smooth = scipy.ndimage.gaussian_filter(plane, 0.7)
    down, right = scipy.ndimage.sobel(smooth, 0), scipy.ndimage.sobel(smooth, 1)
    slope = np.hypot(down, right)
    ridge = (slope == scipy.ndimage.maximum_filter(slope, 5)) & (slope > 0)
    margin = PROFILE_REACH + 2
    inside = np.zeros_like(ridge)
    inside[margin:-margin, margin:-margin] = True
    rows, columns = np.nonzero(ridge & inside)
    steepest = np.argsort(-slope[rows, columns], kind="stable")[: min(2000, max(len(rows) // 5, 20))]
    rows, columns = rows[steepest], columns[steepest]
    steepness = slope[rows, columns]
    offsets = np.arange(-PROFILE_REACH, PROFILE_REACH + 0.25, 0.5)
    across = [
        rows[:, None] + (down[rows, columns] / steepness)[:, None] * offsets,
        columns[:, None] + (right[rows, columns] / steepness)[:, None] * offsets,
    ]
    return offsets, scipy.ndimage.map_coordinates(plane, across, order=1)
