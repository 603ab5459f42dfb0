"""Steps that full-reference metrics share: color planes, shrinking, gradients, comparing maps, and pooling.

All in single precision, which is enough for 8-bit pixels. Similarity is computed as its difference from 1, so that
equal pixels lose exactly 0.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32
from agenticiqa.programs.tools.numerics.pixels import Plane

WORKING_SIDE = 256
WORKING_PIXELS = 2_000_000
FRAME = 32  # values of a map
PREWITT = (1 / 3, 1 / 3, 1 / 3)
SCHARR = (3 / 16, 10 / 16, 3 / 16)


def color_planes(rgb: NDArray[Any], weights: tuple[tuple[float, float, float], ...]) -> Plane32:
    """Return the planes (k, H, W) that are weighted sums of the channels of (H, W, 3), with k rows of weights."""
    flat = rgb.reshape(-1, 3).astype(np.float32, copy=False)
    return (np.array(weights, np.float32) @ flat.T).reshape(len(weights), *rgb.shape[:2])


def shrink(pixels: NDArray[Any], factor: int, border: Literal["constant", "edge"] = "constant") -> NDArray[Any]:
    """Average blocks of ``factor`` x ``factor`` pixels, (H, W) or (H, W, 3) in, sides divided and rounded up.

    The blocks start where MATLAB's ``conv2(x, ones(f) / f^2, 'same')`` sampled at ``1:f:end`` puts them, so that
    blocks hang over the image's border by part of a block; what lies outside is zero ("constant") or the nearest
    pixel ("edge"). Whole numbers and single precision give single precision.
    """
    height, width = pixels.shape[:2]
    before = (factor - 1) // 2
    down, across = -(-height // factor), -(-width // factor)
    sides = [(before, max(0, down * factor - height - before)), (before, max(0, across * factor - width - before))]
    if any(map(any, sides)):
        pixels = np.pad(pixels, sides + [(0, 0)] * (pixels.ndim - 2), mode=border)
    pixels = pixels[: down * factor, : across * factor]
    precision = np.result_type(pixels.dtype, np.float32)
    rows = pixels[::factor].astype(precision)
    for offset in range(1, factor):
        rows += pixels[offset::factor]
    means = rows[:, ::factor].copy()
    for offset in range(1, factor):
        means += rows[:, offset::factor]
    means /= factor**2
    return means


def framed(
    compare: Callable[[NDArray[Any], NDArray[Any]], Maps], image: NDArray[Any], reference: NDArray[Any], factor: int
) -> Maps:
    """Return the maps of ``compare``, (.., h, w), one value per ``factor`` x ``factor`` pixels, without its padding.

    Where a filter pads with black, the border of an image is a strong edge that both images share. Both are mirrored at
    their borders by FRAME values of the map before they are compared, and the maps are cut off.
    """
    margin = FRAME * factor
    sides = ((margin, margin), (margin, margin), *[(0, 0)] * (image.ndim - 2))
    rows, columns = (slice(FRAME, FRAME + -(-side // factor)) for side in image.shape[:2])
    pair = (np.pad(pixels, sides, mode="symmetric") for pixels in (image, reference))
    return tuple(plane[..., rows, columns] for plane in compare(*pair))


def working_factor(shape: tuple[int, ...]) -> int:
    """Return the factor by which an image of ``shape`` is shrunk, so that its shorter side is about 256 pixels.

    As FSIM and MDSI define it; but very long images are shrunk further, to at most two million pixels, to bound the
    memory.
    """
    height, width = shape[:2]
    factor = max(1, int(min(height, width) / WORKING_SIDE + 0.5))
    while -(-height // factor) * -(-width // factor) > WORKING_PIXELS:
        factor += 1
    return factor


def gradient_magnitude(plane: Plane32, smoothing: tuple[float, float, float]) -> Plane32:
    """Return the length of the gradient: central differences over two pixels, smoothed across, zeros outside.

    ``smoothing`` has three weights, such as PREWITT or SCHARR.
    """
    height, width = plane.shape
    padded = np.zeros((height + 2, width + 2), plane.dtype)  # np.pad takes as long as a difference
    padded[1:-1, 1:-1] = plane
    down, across = padded[2:] - padded[:-2], padded[:, 2:] - padded[:, :-2]
    energy = np.square(_smoothed(down[:, :-2], down[:, 1:-1], down[:, 2:], smoothing))
    energy += np.square(_smoothed(across[:-2], across[1:-1], across[2:], smoothing))
    return np.sqrt(energy, out=energy)


def _smoothed(before: Plane32, middle: Plane32, after: Plane32, weights: tuple[float, float, float]) -> Plane32:
    total = before + after
    total *= weights[0]
    total += weights[1] * middle
    return total


def dissimilarity(first: Plane32, second: Plane32, constant: float) -> Plane32:
    """Return (a - b)^2 / (a^2 + b^2 + c) = 1 - (2ab + c) / (a^2 + b^2 + c) at each point: 0 where the maps agree."""
    lost = np.square(first - second)
    lost /= np.square(first) + np.square(second) + np.float32(constant)
    return lost


def pool(values: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return the mean of ``values`` weighted by ``weights`` >= 0; the plain mean if all are 0 (a flat image)."""
    total = float(weights.sum(dtype=np.float64))
    if total > 0:
        return float((values * weights).sum(dtype=np.float64)) / total
    return float(values.mean(dtype=np.float64))


def spread(lost: NDArray[Any], weights: NDArray[Any]) -> Plane:
    """Return the map (h, w) with the mean of ``pool``: losses, (h, w) or (k, h, w), times their share of the weight."""
    if lost.ndim == 2:
        lost, weights = lost[None], weights[None]
    total = weights.sum(axis=0)
    mean = float(total.mean(dtype=np.float64))
    shares = (lost * weights).sum(axis=0) / mean if mean > 0 else lost.mean(axis=0)
    return np.maximum(shares, 0, dtype=np.float64)


def enlarge(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a map of blocks as ``shrink`` cuts them, enlarged to the pixels of an image of ``shape``: (H, W) out."""
    height, width = shape[:2]
    factor = -(-height // values.shape[0]) if values.shape[0] > values.shape[1] else -(-width // values.shape[1])
    if factor == 1:
        return values
    before = (factor - 1) // 2
    spread_out = np.pad(values, (0, 1), mode="edge").repeat(factor, axis=0).repeat(factor, axis=1)
    return spread_out[before : before + height, before : before + width]
