"""Fits of the asymmetric generalized Gaussian by its moments, the features of NIQE and BRISQUE.

Source: Lasmar, Stitou, Berthoumieu, "Multiscale skewed heavy tailed model for texture analysis", ICIP 2009.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Moments(NamedTuple):
    """What a fit needs to know of n samples; those of two samples add up. Each is of shape (n,)."""

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
    """The moments of n samples, (n, ...) in."""
    flat = samples.reshape(len(samples), -1)
    size = np.abs(flat)
    return Moments(
        np.array([np.count_nonzero(sample) for sample in flat < 0], float),
        np.array([np.count_nonzero(sample) for sample in flat > 0], float),
        size.sum(axis=1),
        np.einsum("ij,ij->i", flat, flat),
        np.einsum("ij,ij->i", flat, size),
    )


def fit_aggd(found: Moments, count: int) -> Fit:
    """The asymmetric generalized Gaussians with these moments of samples of ``count`` values each."""
    left = np.sqrt(np.maximum(found.energy - found.signed_energy, 0) / 2 / np.maximum(found.below, 1))
    right = np.sqrt(np.maximum(found.energy + found.signed_energy, 0) / 2 / np.maximum(found.above, 1))
    skewed = (found.magnitude / count) ** 2 * (left**3 + right**3) * (left + right)
    total = found.energy / count * (left**2 + right**2) ** 2
    ratio = np.divide(skewed, total, out=np.full_like(total, np.nan), where=total > 0)
    table, known = _table(), np.where(np.isnan(ratio), np.nan, 1.0)
    nearest = np.searchsorted(table.changes, ratio)
    mean = (right - left) * table.tilts[nearest] * known
    return Fit(table.shapes[nearest] * known, left, right, table.units[nearest] * known, mean)


def symmetric_shape(found: Moments, count: int) -> Values:
    """The shapes of the symmetric generalized Gaussians with these moments; the samples must not be all zero."""
    table = _table()
    return table.shapes[np.searchsorted(table.changes, found.magnitude**2 / (found.energy * count))]


@cache
def _table() -> _Table:
    shapes = np.linspace(0.2, 10, 9801)
    once, twice, thrice = (np.array([math.gamma(k / shape) for shape in shapes]) for k in (1, 2, 3))
    ratios = twice**2 / (once * thrice)
    units = np.sqrt(once / thrice)
    return _Table(shapes, (ratios[1:] + ratios[:-1]) / 2, units, units * twice / once)
