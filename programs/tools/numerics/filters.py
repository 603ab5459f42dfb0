"""Fast linear filters for the full-reference metrics, image strip by strip, and the Haar transform.

A filter of k weights on a block of 16 samples is one product with a banded (15 + k) x 16 matrix. Most of its
entries are zero; a matrix product is still several times faster than a loop that multiplies only the others.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import STRIP_PIXELS

Plane32: TypeAlias = NDArray[np.float32]
Maps: TypeAlias = tuple[Plane32, ...]

BLOCK = 16


def correlate(plane: Plane32, weights: tuple[float, ...], axis: int, step: int = 1) -> Plane32:
    """Correlate along one axis (0 down, 1 across) where the window lies wholly inside, keeping every ``step``-th value.

    With k weights, (n - k) // step + 1 of n samples remain; n must be at least k.
    """
    lines = plane if axis else plane.T
    count = (lines.shape[1] - len(weights)) // step + 1
    result = np.empty((lines.shape[0], count) if axis else (count, lines.shape[0]), np.float32)
    out = result if axis else result.T
    operator = _banded(weights, step)
    full, rest = divmod(count, BLOCK)
    if full:
        (down, across), (out_down, out_across) = lines.strides, out.strides
        # as_strided, as this runs hundreds of times an image and sliding_window_view takes as long as the product.
        blocks = as_strided(lines, (full, len(lines), len(operator)), (across * BLOCK * step, down, across))
        targets = as_strided(out, (full, len(out), BLOCK), (out_across * BLOCK, out_down, out_across))
        np.matmul(blocks, operator, out=targets)
    if rest:
        reach = (rest - 1) * step + len(weights)
        start = full * BLOCK * step
        np.matmul(lines[:, start : start + reach], operator[:reach, :rest], out=out[:, full * BLOCK :])
    return result


def strips(
    compare: Callable[[NDArray[Any], NDArray[Any]], Maps],
    image: NDArray[Any],
    reference: NDArray[Any],
    *,
    margin: int,
    step: int = 1,
    pixels: int = STRIP_PIXELS,
) -> Iterator[Maps]:
    """Yield what ``compare`` returns for two images (H, W, ...), strip by strip from the top, in little memory.

    ``compare`` returns maps with one row for every ``step`` rows (rounded up) of its input, and may depend on
    ``margin`` rows, a multiple of ``step``, above and below. Strips overlap by that, and the overlap is cut off, so
    that the strips' rows together are those of the whole image. The strips depend on the shape alone.
    """
    height, width = image.shape[:2]
    units = -(-height // step)
    count = max(1, min(height * width // pixels, height // (4 * margin + step)))
    edges = [step * (units * index // count) for index in range(count)] + [height]
    for top, bottom in pairwise(edges):
        start, stop = max(0, top - margin), min(height, bottom + margin)
        inside = slice((top - start) // step, -(-(bottom - start) // step))
        yield tuple(values[inside] for values in compare(image[start:stop], reference[start:stop]))


def whole(
    compare: Callable[[NDArray[Any], NDArray[Any]], Maps],
    image: NDArray[Any],
    reference: NDArray[Any],
    *,
    margin: int,
    step: int = 1,
    pixels: int = STRIP_PIXELS,
) -> Maps:
    """Return the maps of the whole image, put together from ``strips``, which has the same arguments."""
    rows = -(-image.shape[0] // step)
    maps: Maps = ()
    done = 0
    for parts in strips(compare, image, reference, margin=margin, step=step, pixels=pixels):
        maps = maps or tuple(np.empty((rows, *part.shape[1:]), np.float32) for part in parts)
        for target, part in zip(maps, parts, strict=True):
            target[done : done + len(part)] = part
        done += len(parts[0])
    return maps


@lru_cache(maxsize=64)
def _banded(weights: tuple[float, ...], step: int) -> Plane32:
    """Return the matrix that takes a block of samples, as a row, to its ``BLOCK`` filtered values."""
    matrix = np.zeros(((BLOCK - 1) * step + len(weights), BLOCK), np.float32)
    for column in range(BLOCK):
        matrix[column * step : column * step + len(weights), column] = weights
    return matrix


def haar(plane: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return one level of the Haar transform: the plane at half its size, and the magnitudes of detail in gray levels.

    The magnitudes have the shape (3, .., H // 2, W // 2): vertical, horizontal and diagonal detail.
    """
    height, width = plane.shape[-2] // 2 * 2, plane.shape[-1] // 2 * 2
    a, b = plane[..., 0:height:2, 0:width:2], plane[..., 0:height:2, 1:width:2]
    c, d = plane[..., 1:height:2, 0:width:2], plane[..., 1:height:2, 1:width:2]
    top, bottom, left, right = a + b, c + d, a - b, c - d
    magnitudes = np.empty((3, *top.shape), top.dtype)
    np.add(left, right, out=magnitudes[0])
    np.subtract(top, bottom, out=magnitudes[1])
    np.subtract(left, right, out=magnitudes[2])
    np.abs(magnitudes, out=magnitudes)
    magnitudes *= 0.5
    return (top + bottom) / 4, magnitudes
