"""Agreement of predictions with mean opinion scores.

SRCC is Spearman's rank correlation, KRCC Kendall's tau-b, PLCC Pearson's linear correlation, raw or after the
monotone 4-parameter logistic of the Video Quality Experts Group (VQEG Phase II, 2003). Every correlation is in
[-1, 1] or ``None`` where it is undefined, never NaN: ``why_undefined`` then says why.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.special import expit
from scipy.stats import kendalltau

Numbers = NDArray[np.float64]

MIN_IMAGES = 3
BOUNDS = ([-25, -25, -25, 1e-3], [25, 25, 25, 25])  # of the logistic's parameters, in standard deviations
MIN_IMAGES_TO_FIT = 5  # one more than the curve has parameters


def why_undefined(predictions: ArrayLike, mos: ArrayLike) -> str | None:
    """Why a correlation is undefined, in words; ``None`` where it is defined. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    if len(x) < MIN_IMAGES:
        return f"too few images for a correlation ({len(x)}, at least {MIN_IMAGES})"
    if np.ptp(x) == 0:
        return "the predictions are all the same"
    if np.ptp(y) == 0:
        return "the labels are all the same"
    return None


def srcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Spearman's rank correlation. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    return plcc(_ranks(x), _ranks(y))


def krcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Kendall's tau-b, which handles ties. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    return None if why_undefined(x, y) else float(kendalltau(x, y, method="asymptotic").statistic)


def plcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Pearson's linear correlation of the raw values. Raises ValueError as ``checked`` does."""
    x, y = checked(predictions, mos)
    if why_undefined(x, y):
        return None
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt(x @ x) * np.sqrt(y @ y))
    return float(np.clip(x @ y / spread, -1, 1)) if spread > 0 else None


def mean_absolute_error(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """The mean absolute difference on a common scale; ``None`` without images. Raises ValueError like ``checked``."""
    x, y = checked(predictions, mos)
    return float(np.abs(x - y).mean()) if len(x) else None


def logistic_fit(predictions: ArrayLike, mos: ArrayLike) -> Numbers | None:
    """The predictions on the labels' scale, through the logistic curve that fits best (least squares).

    (b1 - b2) / (1 + exp(-(x - b3) / b4)) + b2, started from the labels' maximum and minimum, the mean of x, and its
    standard deviation or a quarter of it, whichever fits better. The parameters are bounded, because data on a straight
    line would otherwise have no best fit: the line is the limit of ever wider curves. A falling curve is mirrored, so
    that a correlation keeps its sign. ``None`` when no fit is found or there are fewer than 5 images.
    """
    x, y = checked(predictions, mos)
    if len(x) < MIN_IMAGES_TO_FIT or why_undefined(x, y):
        return None
    z, scale = (x - x.mean()) / x.std(), y.std()
    target = (y - y.mean()) / scale
    starts = [(target.max(), target.min(), 0.0, width) for width in (1.0, 0.25)]
    fits = [least_squares(lambda b: _logistic(z, *b) - target, start, bounds=BOUNDS) for start in starts]
    converged = [fit for fit in fits if fit.success]
    if not converged:
        return None
    upper, lower, center, width = min(converged, key=lambda fit: float(fit.cost)).x
    fitted = _logistic(z, upper, lower, center, width)
    if upper < lower:
        fitted = -fitted
    return fitted * scale + y.mean() if np.ptp(fitted) > 0 else None


def checked(predictions: ArrayLike, mos: ArrayLike) -> tuple[Numbers, Numbers]:
    """Both as float arrays of one length. Raises ValueError for lengths that differ and for NaN or infinity."""
    x, y = np.asarray(predictions, dtype=np.float64), np.asarray(mos, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected as many predictions as labels, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("predictions and labels have to be finite numbers: leave out images without a score")
    return x, y


def _ranks(x: Numbers) -> Numbers:
    """Ranks from 1, ties at their mean. As SciPy's ``rankdata``, but several times faster."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _logistic(x: Numbers, upper: float, lower: float, center: float, width: float) -> Numbers:
    return (upper - lower) * expit((x - center) / width) + lower
