"""Measure the agreement of predictions with mean opinion scores (MOS).

SRCC is Spearman's rank correlation, KRCC Kendall's tau-b, PLCC Pearson's linear correlation of the unchanged values
(``eval.logistic`` fits the curves that are usually applied before). Every correlation is in [-1, 1], or ``None`` if it
is undefined, never NaN: ``why_undefined`` then gives the reason.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kendalltau

Numbers = NDArray[np.float64]

MIN_IMAGES = 3


def why_undefined(predictions: ArrayLike, mos: ArrayLike) -> str | None:
    """Return why a correlation is undefined, in words; ``None`` if defined. Raises ValueError like ``checked``."""
    return _why_undefined(*checked(predictions, mos))


def _why_undefined(x: Numbers, y: Numbers) -> str | None:
    if len(x) < MIN_IMAGES:
        return f"too few images for a correlation ({len(x)}, at least {MIN_IMAGES})"
    if np.ptp(x) == 0:
        return "the predictions are all the same"
    if np.ptp(y) == 0:
        return "the labels are all the same"
    return None


def srcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Return Spearman's rank correlation. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    return plcc(average_ranks(places_of(x)), average_ranks(places_of(y)))


def places_of(values: Numbers) -> NDArray[np.intp]:
    """Return the place of each value (N,) among the distinct ones, from 0."""
    return np.unique(values, return_inverse=True)[1]


def average_ranks(places: NDArray[np.intp]) -> Numbers:
    """Return the ranks from 1 of values with these ``places_of``; equal values share the mean of their ranks.

    Places are sorted once, so the ranks within any part of the images are counted, without sorting it. They equal
    ``scipy.stats.rankdata`` of the values.
    """
    counts = np.bincount(places)
    below = np.cumsum(counts) - counts
    return np.asarray((below + (counts + 1) / 2)[places], dtype=np.float64)


def krcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Return Kendall's tau-b, which handles ties. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    return None if _why_undefined(x, y) else float(kendalltau(x, y, method="asymptotic").statistic)


def plcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Return Pearson's linear correlation of the raw values. Raises ValueError as ``checked`` does."""
    return linear_correlation(*checked(predictions, mos))


def linear_correlation(x: Numbers, y: Numbers) -> float | None:
    """Return the same for arrays that ``checked`` returned."""
    if _why_undefined(x, y):
        return None
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt(x @ x) * np.sqrt(y @ y))
    return float(np.clip(x @ y / spread, -1, 1)) if spread > 0 else None


def mean_absolute_error(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Return the mean absolute difference on one scale; ``None`` for no images. Raises ValueError like ``checked``."""
    x, y = checked(predictions, mos)
    return float(np.abs(x - y).mean()) if len(x) else None


def rmse(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Return the root of the mean squared difference; ``None`` without images. Raises ValueError like ``checked``."""
    x, y = checked(predictions, mos)
    return float(np.sqrt(np.square(x - y).mean())) if len(x) else None


def checked(predictions: ArrayLike, mos: ArrayLike) -> tuple[Numbers, Numbers]:
    """Return both as float arrays of one length. Raises ValueError for lengths that differ and for NaN or infinity."""
    x, y = np.asarray(predictions, dtype=np.float64), np.asarray(mos, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected as many predictions as labels, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("predictions and labels must be finite numbers: remove images without a score")
    return x, y
