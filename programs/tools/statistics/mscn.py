"""Brightness normalized by its local mean and deviation (MSCN coefficients), for NIQE, BRISQUE and PIQE.

An image is read in bands of rows, so that apart from one byte per pixel the memory needed grows with its width alone. A
band's coefficients are those of the whole image: every filter is given the rows that it needs beyond the band.

NIQE and BRISQUE fit the asymmetric generalized Gaussian to these, by its moments.
Source of the fit: Lasmar, Stitou, Berthoumieu, "Multiscale skewed heavy tailed model for texture analysis", ICIP 2009.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import GrayLevels, Plane, gaussian

Border = Literal["edge", "constant"]

REACH = 3  # pixels to either side: the window has 7
CHUNK = 48 * 1024  # pixels that are worked on at once, few enough for a processor's cache


@dataclass(frozen=True)
class Scale:
    """A plane of brightness, 0..255, read piecemeal: ``rows(top, bottom)`` gives its rows top..bottom-1."""

    height: int
    width: int
    rows: Callable[[int, int], Plane | GrayLevels]


def full_scale(levels: GrayLevels) -> Scale:
    """Return the plane at full size."""
    height, width = levels.shape
    return Scale(height, width, lambda top, bottom: levels[top:bottom])


def half_scale(levels: GrayLevels) -> Scale:
    """Return the plane at half size, (ceil(H / 2), ceil(W / 2)), by the bicubic filter of MATLAB's imresize."""
    height, width = levels.shape

    def rows(top: int, bottom: int) -> Plane:
        # Eight taps: output i lies midway between inputs 2i and 2i + 1.
        needed = np.arange(2 * top - 3, 2 * bottom + 3)
        band = levels[mirrored(needed, height)].astype(np.float64)
        shorter = _halved(band[::2], band[1::2])
        columns = mirrored(np.arange(-3, width + 3 + width % 2), width)
        return _halved(shorter[:, columns[::2]].T, shorter[:, columns[1::2]].T).T

    return Scale((height + 1) // 2, (width + 1) // 2, rows)


def mirrored(positions: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the indices in 0..count-1 of positions beyond either end if the border is a mirror (c b a|a b c)."""
    folded = positions % (2 * count)
    return np.minimum(folded, 2 * count - 1 - folded)


def band_height(width: int, multiple: int = 1) -> int:
    """Return how many rows to read at once: about CHUNK pixels, at least eight rows, a multiple of ``multiple``."""
    return max(8, CHUNK // width) // multiple * multiple or multiple


def coefficients(scale: Scale, top: int, bottom: int, border: Border) -> Plane:
    """Return the mean-subtracted, contrast-normalized coefficients of rows top..bottom-1 (BRISQUE paper, Eq. 1 to 3).

    ``border`` is the fill outside the plane: "edge" repeats the nearest pixel, "constant" is black.
    """
    padded = _padded(scale, top, bottom, border)
    values = np.empty((bottom - top, scale.width))
    step = max(64, CHUNK // (bottom - top))
    for left in range(0, scale.width, step):
        values[:, left : left + step] = _normalized(padded[:, left : left + step + 2 * REACH])
    return values


def neighbor_products(torus: Plane) -> Iterator[Plane]:
    """Yield the coefficients, then their products with neighbors: (n, h + 1, w + 1) in, (n, h, w) out.

    The first row and column of ``torus`` are the last ones once more.
    """
    here, beside, above, across = torus[:, 1:, 1:], torus[:, 1:, :-1], torus[:, :-1, 1:], torus[:, :-1, :-1]
    yield here
    yield here * beside
    yield here * above
    yield here * across
    yield beside * above


def _padded(scale: Scale, top: int, bottom: int, border: Border) -> Plane:
    """Return the rows top..bottom-1 with what lies up to 3 pixels beyond, on all sides."""
    first, last = max(top - REACH, 0), min(bottom + REACH, scale.height)
    padded = np.zeros((bottom - top + 2 * REACH, scale.width + 2 * REACH))
    start, stop = first - top + REACH, last - top + REACH
    padded[start:stop, REACH:-REACH] = scale.rows(first, last)
    if border == "edge":
        padded[:start], padded[stop:] = padded[start], padded[stop - 1]
        padded[:, :REACH], padded[:, -REACH:] = padded[:, REACH, None], padded[:, -REACH - 1, None]
    return padded


def _normalized(padded: Plane) -> Plane:
    """Return coefficients (h, w) of brightness (h + 6, w + 6)."""
    mean = _local_mean(padded)
    deviation = _local_mean(padded * padded)
    deviation -= mean * mean
    np.sqrt(np.abs(deviation, out=deviation), out=deviation)
    deviation += 1
    difference = padded[REACH:-REACH, REACH:-REACH] - mean
    # Where the image is flat, the difference is rounding error. Its sign would decide on which side of zero the pixel
    # counts in the fits. In the authors' release it does, so its values depend on the machine for flat regions.
    difference[np.abs(difference) < 1e-9] = 0
    difference /= deviation
    return difference


def _local_mean(padded: Plane) -> Plane:
    return _smoothed(_smoothed(padded).T).T


def _smoothed(values: Plane) -> Plane:
    """Filter the columns with the Gaussian window where it lies inside: (h + 6, w) in, (h, w) out."""
    weights, height = _window(), len(values) - 2 * REACH
    total = weights[REACH] * values[REACH : REACH + height]
    pair = np.empty_like(total)
    for above in range(REACH):
        below = 2 * REACH - above
        np.add(values[above : above + height], values[below : below + height], out=pair)
        pair *= weights[above]
        total += pair
    return total


def _halved(even: Plane, odd: Plane) -> Plane:
    """Apply the bicubic filter to rows given alternately by ``even`` and ``odd``: (h + 3, w) each in, (h, w) out."""
    weights, height = _bicubic(), len(even) - 3
    pairs = ((even, 0, odd, 3), (odd, 0, even, 3), (even, 1, odd, 2), (odd, 1, even, 2))
    total = np.zeros_like(even[:height])
    for weight, (near, first, far, last) in zip(weights, pairs, strict=True):
        total += weight * (near[first : first + height] + far[last : last + height])
    return total


@cache
def _window() -> Plane:
    return gaussian(2 * REACH + 1, 7 / 6)


@cache
def _bicubic() -> Plane:
    """Return the first four of its eight taps; the others mirror them."""
    distance = np.abs(np.arange(8) - 3.5) / 2
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance <= 1, near, far)
    return weights[:4] / weights.sum()


Values = NDArray[np.float64]


class Moments(NamedTuple):
    """The moments of n samples that a fit needs; those of two parts of a sample add up. Each is of shape (n,)."""

    below: Values  # how many values are negative
    above: Values  # how many are positive
    magnitude: Values  # sum of |v|
    energy: Values  # sum of v^2
    signed_energy: Values  # sum of v |v|


@dataclass(frozen=True)
class Fit:
    """Shape in [0.2, 10] (NaN where all values are zero), left and right deviation; each of shape (n,).

    ``unit`` is the distribution's scale parameter for a deviation of one, ``mean`` its mean.
    """

    shape: Values
    left: Values
    right: Values
    unit: Values
    mean: Values


class _Table(NamedTuple):
    shapes: Values
    changes: Values  # the ratios of moments where the nearest shape changes
    units: Values
    tilts: Values  # the mean for a right deviation that exceeds the left one by one


def moments(samples: Values) -> Moments:
    """Return the moments of n samples, (n, ...) in."""
    flat = samples.reshape(len(samples), -1)
    size = np.abs(flat)
    return Moments(
        np.array([np.count_nonzero(sample) for sample in flat < 0], float),
        np.array([np.count_nonzero(sample) for sample in flat > 0], float),
        size.sum(axis=1),
        np.einsum("ij,ij->i", flat, flat),
        np.einsum("ij,ij->i", flat, size),
    )


def fit_aggd(sums: Moments, count: int) -> Fit:
    """Return the asymmetric generalized Gaussians with these moments of samples of ``count`` values each."""
    left = np.sqrt(np.maximum(sums.energy - sums.signed_energy, 0) / 2 / np.maximum(sums.below, 1))
    right = np.sqrt(np.maximum(sums.energy + sums.signed_energy, 0) / 2 / np.maximum(sums.above, 1))
    skewed = (sums.magnitude / count) ** 2 * (left**3 + right**3) * (left + right)
    total = sums.energy / count * (left**2 + right**2) ** 2
    ratio = np.divide(skewed, total, out=np.full_like(total, np.nan), where=total > 0)
    table, known = _table(), np.where(np.isnan(ratio), np.nan, 1.0)
    nearest = np.searchsorted(table.changes, ratio)
    mean = (right - left) * table.tilts[nearest] * known
    return Fit(table.shapes[nearest] * known, left, right, table.units[nearest] * known, mean)


def symmetric_shape(sums: Moments, count: int) -> Values:
    """Return the shapes of the symmetric generalized Gaussians with these moments; the samples must not be all zero."""
    table = _table()
    return table.shapes[np.searchsorted(table.changes, sums.magnitude**2 / (sums.energy * count))]


@cache
def _table() -> _Table:
    shapes = np.linspace(0.2, 10, 9801)
    once, twice, thrice = (np.array([math.gamma(k / shape) for shape in shapes]) for k in (1, 2, 3))
    ratios = twice**2 / (once * thrice)
    units = np.sqrt(once / thrice)
    return _Table(shapes, (ratios[1:] + ratios[:-1]) / 2, units, units * twice / once)
