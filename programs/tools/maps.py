"""Steps that the full-reference metrics share: making planes smaller, comparing maps, and pooling the comparison."""

from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.tools.pixels import Plane


def shrink(
    pixels: NDArray[np.uint8] | Plane, factor: int, border: Literal["constant", "edge"] = "constant"
) -> NDArray[np.float64]:
    """Means of blocks of ``factor`` x ``factor`` pixels, (H, W) or (H, W, 3) in, sides divided and rounded up.

    The blocks start where MATLAB's ``conv2(x, ones(f) / f^2, 'same')`` sampled at ``1:f:end`` puts them, so that
    blocks hang over the image's border by part of a block; what lies outside is zero ("constant") or the nearest
    pixel ("edge").
    """
    height, width = pixels.shape[:2]
    before = (factor - 1) // 2
    down, across = -(-height // factor), -(-width // factor)
    sides = [(before, max(0, down * factor - height - before)), (before, max(0, across * factor - width - before))]
    padded = np.pad(pixels, sides + [(0, 0)] * (pixels.ndim - 2), mode=border)[: down * factor, : across * factor]
    return padded.reshape(down, factor, across, factor, *pixels.shape[2:]).mean(axis=(1, 3))


def gradient_magnitude(plane: Plane, smoothing: Plane) -> Plane:
    """Length of the gradient from central differences over two pixels, smoothed across; zeros outside the plane.

    ``smoothing`` has three weights: 1/3 each for Prewitt's operator, 3/16, 10/16, 3/16 for Scharr's.
    """
    difference = np.array([-1.0, 0.0, 1.0])
    parts = []
    for axis in (0, 1):
        across = scipy.ndimage.correlate1d(plane, smoothing, axis=1 - axis, mode="constant")
        parts.append(scipy.ndimage.correlate1d(across, difference, axis=axis, mode="constant"))
    return np.hypot(*parts)


def similarity(first: Plane, second: Plane, constant: float) -> Plane:
    """Pointwise (2ab + c) / (a^2 + b^2 + c): 1 where the maps agree, towards 0 (or below) where they differ."""
    return (2 * first * second + constant) / (first**2 + second**2 + constant)


def pool(values: Plane, weights: Plane) -> float:
    """Mean of ``values`` weighted by ``weights`` >= 0; the plain mean where no pixel has weight, as in flat images."""
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0 else float(values.mean())
