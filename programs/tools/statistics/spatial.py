"""Measures of one spatial distortion each, without a reference: blur, noise, impulses, blocking.

Each takes the luma, 0..255, of one or more parts of an image, float32 arrays (h, w) of any size from one pixel up, and
gives one finite float for all of them together. They compare neighbouring pixels, so they need the pixels as they are:
scaling an image changes what they say. ``measures.take`` gives them the right parts of an image.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.statistics.mscn import mirrored

Luma = NDArray[np.float32]

BLUR_WINDOW = 11  # pixels, as in the paper of the blur effect
NOISE_BLOCK = 16  # pixels
IMPULSE_HEIGHT = 40  # grey levels
GRID = 8  # pixels, the block of JPEG
LARGEST_GRID_STEP = 12.0  # grey levels: a larger step is the scene's own edge
FAINT_STEP = 0.5  # grey levels: a grid of fainter steps is hardly seen, however smooth the image is otherwise


def blur_extent(parts: Sequence[Luma]) -> float:
    """How little the image changes when blurred again: 0 (it changes wholly) to 1 (already blurred, or flat).

    Crete, Dolmiere, Ladret, Nicolas, "The blur effect: perception and estimation with a new no-reference perceptual
    blur metric", SPIE 6492 (2007), on Sobel gradients, the worse of the two directions. Sharp photos lie between 0.2
    and 0.42. A flat image has no edge to judge and gives 0.
    """
    extents = [0.0]
    for axis in (0, 1):
        pairs = [[each.sum(dtype=float) for each in gradients(part, axis)] for part in parts]
        total, left = np.sum(pairs, axis=0)
        if total > 1e-6:
            extents.append(float(left / total))
    return max(extents)


def noise_sigma(parts: Sequence[Luma]) -> float:
    """Standard deviation of the noise in luma, in grey levels (0 to about 70; it reads about 10 % low).

    The residual is Immerkaer's ("Fast noise variance estimation", CVIU 64, 1996), which any plane or straight ramp
    leaves at zero. Its median magnitude is taken in blocks of 16 x 16 pixels, scaled as for a Gaussian, and the tenth
    percentile over the blocks that are not clipped is the estimate: the smoothest parts of the scene speak for it,
    texture does not. Clean photos stay below 2.4.
    """
    blocks = [block_noise(part) for part in parts if min(part.shape) >= 3]
    if not blocks:
        return 0.0
    sigmas = np.concatenate([sigma.ravel() for sigma, _ in blocks])
    clipped = np.concatenate([flags.ravel() for _, flags in blocks])
    return float(np.percentile(sigmas if clipped.all() else sigmas[~clipped], 10))


def isolated_pixels(parts: Sequence[Luma]) -> float:
    """Share of pixels more than 40 grey levels above or below all eight neighbours: impulse noise. 0 to 0.25."""
    isolated = 0
    for part in parts:
        for plane in (part, -part):
            beside = np.maximum(plane[:, :-2], plane[:, 2:])
            rows = np.maximum(beside, plane[:, 1:-1])
            around = np.maximum(np.maximum(rows[:-2], rows[2:]), beside[1:-1])
            isolated += int(np.count_nonzero(plane[1:-1, 1:-1] - around > IMPULSE_HEIGHT))
    return isolated / sum(part.size for part in parts)


def blockiness(parts: Sequence[Luma]) -> float:
    """How much stronger luma steps are on an 8 x 8 grid than between its lines: about 1 without blocking, up to 25.

    A step counts by what it exceeds its two neighbours in the row, up to 12 grey levels, in the spirit of Wang, Sheikh,
    Bovik, "No-reference perceptual quality assessment of JPEG compressed images", ICIP 2002. The grid may start
    anywhere, so crops of a compressed image show it too; all parts have the same. JPEG of quality 60 gives 1.2 to 2.1,
    of quality 12 2 to 6.
    """
    return float(np.mean([grid_ratios(parts, axis).max() for axis in (0, 1)]))


def gradients(part: Luma, axis: int) -> tuple[Luma, Luma]:
    """Magnitude of Sobel's gradient along an axis, and what is left of it, at most, after blurring along that axis.

    (h, w) in, two of (h - 3, w - 3) out, for the pixels from (2, 2) on; none for a part that is smaller than that.
    """
    if min(part.shape) < 4:
        return (np.zeros((0, 0), np.float32),) * 2
    along = part.T if axis else part
    across = along[:, 1:-2] + along[:, 3:]
    across += 2 * along[:, 2:-1]
    before = np.abs(across[3:] - across[1:-2])
    # The gradient of a running mean is the difference of the pixels that enter and those that leave its window.
    reach = BLUR_WINDOW // 2
    around = across[mirrored(np.arange(1 - reach, len(along) + reach), len(along))]
    pairs = around[1:] + around[:-1]
    after = np.abs(pairs[BLUR_WINDOW:] - pairs[:-BLUR_WINDOW])
    after /= BLUR_WINDOW
    np.minimum(before, after, out=after)
    return (before.T, after.T) if axis else (before, after)


def block_noise(part: Luma) -> tuple[Luma, NDArray[np.bool_]]:
    """The noise of each whole block of 16 x 16 pixels in grey levels, and whether over a tenth of it is clipped.

    (h, w) in, both at least 3; two arrays (rows, columns) out, of one block where it is smaller than a block.
    """
    rough = np.abs(_second_difference(_second_difference(part).T).T)
    inner = part[1:-1, 1:-1]
    sorted_sizes = np.sort(_blocks(rough), axis=-1)
    count = sorted_sizes.shape[-1]
    medians = (sorted_sizes[..., (count - 1) // 2] + sorted_sizes[..., count // 2]) / 2
    clipped = _blocks((inner <= 3) | (inner >= 252)).sum(axis=-1) >= 0.1 * count
    return medians / np.float32(6 * 0.6745), clipped


def grid_ratios(parts: Sequence[Luma], axis: int) -> NDArray[np.float64]:
    """For each of the eight grids along an axis, the mean step on it over that on the other seven: (8,)."""
    sums, counts = np.zeros(GRID), np.zeros(GRID)
    for part in parts:
        if part.shape[axis] >= 2 * GRID + 3:
            by_line = grid_steps(part, axis).mean(axis=1 - axis, dtype=float)
            phases = np.arange(len(by_line)) % GRID
            sums += np.bincount(phases, by_line, GRID) * part.shape[1 - axis]
            counts += np.bincount(phases, minlength=GRID) * part.shape[1 - axis]
    if not counts.any():
        return np.ones(GRID)
    by_phase = sums / counts
    others = (by_phase.sum() - by_phase) / (GRID - 1)
    return (by_phase + FAINT_STEP) / (others + FAINT_STEP)


def grid_steps(part: Luma, axis: int) -> Luma:
    """By how much each step along an axis, from the second on, exceeds its two neighbours: 0..12, three fewer out."""
    along = part.T if axis else part
    step = np.abs(along[1:] - along[:-1])
    excess = step[:-2] + step[2:]
    excess *= -0.5
    excess += step[1:-1]
    np.clip(excess, 0, LARGEST_GRID_STEP, out=excess)
    return excess.T if axis else excess


def _second_difference(plane: Luma) -> Luma:
    found = plane[:-2] + plane[2:]
    found -= 2 * plane[1:-1]
    return found


def _blocks(plane: np.ndarray) -> np.ndarray:
    """The whole 16 x 16 blocks, (rows, columns, 256), or all of a smaller plane as one: (1, 1, h * w)."""
    rows, columns = (side // NOISE_BLOCK for side in plane.shape)
    if not rows or not columns:
        return plane.reshape(1, 1, -1)
    whole = plane[: rows * NOISE_BLOCK, : columns * NOISE_BLOCK]
    return whole.reshape(rows, NOISE_BLOCK, columns, NOISE_BLOCK).swapaxes(1, 2).reshape(rows, columns, -1)
