"""How much noise an image has, without a reference: Gaussian-like noise and single impulses.

Each function takes the luma, 0..255, of one or more parts of an image, float32 arrays (h, w) of any size from one pixel
up, and returns one finite float for all of them together.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.statistics.parts import Luma

BLOCK = 16  # pixels
IMPULSE_HEIGHT = 40  # gray levels


def noise_sigma(parts: Sequence[Luma]) -> float:
    """Return the standard deviation of the noise in luma, in gray levels (0 to about 70; it reads about 10 % low).

    The residual is Immerkaer's, which is zero on any plane or straight ramp. Its median magnitude is taken in blocks of
    16 x 16 pixels, scaled as for a Gaussian, and the tenth percentile over the blocks that are not clipped is the
    estimate: the noise of the smoothest parts of the scene, without texture. Clean photos stay below 2.4.
    Source: Immerkaer, "Fast noise variance estimation", CVIU 64, 1996.
    """
    blocks = [block_noise(part) for part in parts if min(part.shape) >= 3]
    if not blocks:
        return 0.0
    sigmas = np.concatenate([sigma.ravel() for sigma, _ in blocks])
    clipped = np.concatenate([flags.ravel() for _, flags in blocks])
    return float(np.percentile(sigmas if clipped.all() else sigmas[~clipped], 10))


def isolated_pixels(parts: Sequence[Luma]) -> float:
    """Return the share of pixels over 40 gray levels above or below all eight neighbors: impulse noise. 0 to 0.25."""
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


def block_noise(part: Luma) -> tuple[Luma, NDArray[np.bool_]]:
    """Return the noise of each whole block of 16 x 16 pixels in gray levels, and whether over a tenth of it is clipped.

    (h, w) in, both at least 3; two arrays (rows, columns) out, of one block where it is smaller than a block.
    """
    rough = np.abs(_second_difference(_second_difference(part).T).T)
    inner = part[1:-1, 1:-1]
    sorted_sizes = np.sort(_blocks(rough), axis=-1)
    count = sorted_sizes.shape[-1]
    medians = (sorted_sizes[..., (count - 1) // 2] + sorted_sizes[..., count // 2]) / 2
    clipped = _blocks((inner <= 3) | (inner >= 252)).sum(axis=-1) >= 0.1 * count
    return medians / np.float32(6 * 0.6745), clipped


def _second_difference(plane: Luma) -> Luma:
    difference = plane[:-2] + plane[2:]
    difference -= 2 * plane[1:-1]
    return difference


def _blocks(plane: np.ndarray) -> np.ndarray:
    """Return the whole 16 x 16 blocks, (rows, columns, 256), or all of a smaller plane as one: (1, 1, h * w)."""
    rows, columns = (side // BLOCK for side in plane.shape)
    if not rows or not columns:
        return plane.reshape(1, 1, -1)
    whole = plane[: rows * BLOCK, : columns * BLOCK]
    return whole.reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2).reshape(rows, columns, -1)
