"""How well predictions follow mean opinion scores, and how sure one can be of that.

SRCC is Spearman's rank correlation, KRCC Kendall's tau-b, PLCC Pearson's linear correlation, raw or after the
monotone 4-parameter logistic of the Video Quality Experts Group (VQEG Phase II, 2003). Every correlation is in
[-1, 1] or ``None`` where it is undefined, never NaN: ``why_undefined`` then says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import curve_fit
from scipy.special import expit
from scipy.stats import kendalltau, rankdata

Numbers = NDArray[np.float64]
Measure = Callable[[Numbers, Numbers], float | None]

FEWEST = 3
FEWEST_TO_FIT = 5  # one more than the curve has parameters
RESAMPLES = 1000
FEW_CONTENTS = 10


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval.

    ``value`` is ``None`` where the figure is undefined, ``low`` and ``high`` where the interval is; ``note`` says why,
    and what else a reader has to know. ``n`` is the number of images behind it.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    note: str = ""


def why_undefined(predictions: ArrayLike, mos: ArrayLike) -> str | None:
    """Why no correlation can be had, in words; ``None`` when one can. Raises ValueError as ``srcc`` does."""
    x, y = _checked(predictions, mos)
    if len(x) < FEWEST:
        return f"{len(x)} images are too few for a correlation, {FEWEST} are the least"
    if np.ptp(x) == 0:
        return "the predictions are all the same"
    if np.ptp(y) == 0:
        return "the labels are all the same"
    return None


def srcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Spearman's rank correlation. Raises ValueError for lengths that differ and for NaN or infinity."""
    x, y = _checked(predictions, mos)
    return plcc(rankdata(x), rankdata(y))


def krcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Kendall's tau-b, which allows for ties. Raises as ``srcc`` does."""
    x, y = _checked(predictions, mos)
    return None if why_undefined(x, y) else float(kendalltau(x, y).statistic)


def plcc(predictions: ArrayLike, mos: ArrayLike) -> float | None:
    """Pearson's linear correlation of the raw values. Raises as ``srcc`` does."""
    x, y = _checked(predictions, mos)
    if why_undefined(x, y):
        return None
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt(x @ x) * np.sqrt(y @ y))
    return float(np.clip(x @ y / spread, -1, 1)) if spread > 0 else None


def logistic_fit(predictions: ArrayLike, mos: ArrayLike) -> Numbers | None:
    """The predictions on the labels' scale, through the logistic curve that fits best (least squares).

    (b1 - b2) / (1 + exp(-(x - b3) / |b4|)) + b2, started at b1, b2 = max, min of the labels, b3 = mean of x and b4 = its
    standard deviation, then a quarter of it; the better of the two is taken. Falling predictions fit a falling curve:
    the result is then mirrored, so that a correlation keeps its sign. ``None`` when no fit was found or fewer than 5
    images are there.
    """
    x, y = _checked(predictions, mos)
    if len(x) < FEWEST_TO_FIT or why_undefined(x, y):
        return None
    z, scale = (x - x.mean()) / x.std(), y.std()
    target = (y - y.mean()) / scale
    fits = [fit for width in (1.0, 0.25) if (fit := _fit(z, target, width)) is not None]
    if not fits:
        return None
    upper, lower, centre, width = min(fits, key=lambda fit: float(np.sum((_logistic(z, *fit) - target) ** 2)))
    fitted = _logistic(z, upper, lower, centre, width)
    if upper < lower:
        fitted = -fitted
    return fitted * scale + y.mean() if np.ptp(fitted) > 0 else None


def plcc_fitted(predictions: ArrayLike, mos: ArrayLike) -> tuple[float | None, str]:
    """PLCC after ``logistic_fit``, and a note: empty, or that no fit was found and the raw PLCC is given instead."""
    fitted = logistic_fit(predictions, mos)
    if fitted is None:
        return plcc(predictions, mos), why_undefined(
            predictions, mos
        ) or "no logistic fit was found: this is the raw PLCC"
    return plcc(fitted, mos), ""


def estimate(
    measure: Measure,
    predictions: ArrayLike,
    mos: ArrayLike,
    contents: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A figure with its bootstrap interval (percentiles 2.5 and 97.5).

    Contents are drawn with replacement, each with all of its images, so repeated contents widen the interval as they
    should; where every content has one image this is the plain bootstrap over images. Raises as ``srcc`` does.
    """
    x, y = _checked(predictions, mos)
    value = measure(x, y)
    drawn = [measure(x[rows], y[rows]) for rows in _resampled(contents, resamples, seed)]
    return _estimate(value, drawn, contents, why_undefined(x, y))


def estimate_fitted(
    predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The fitted PLCC with its interval. The curve is fitted once, on all images, and kept for every resample."""
    fitted = logistic_fit(predictions, mos)
    result = estimate(plcc, predictions if fitted is None else fitted, mos, contents, resamples=resamples, seed=seed)
    _, note = plcc_fitted(predictions, mos)
    return Estimate(result.value, result.low, result.high, result.n, _joined(note, result.note))


def paired_difference(
    measure: Measure,
    first: ArrayLike,
    second: ArrayLike,
    mos: ArrayLike,
    contents: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """How much better ``first`` does than ``second`` on the same images, both measured on the same resamples."""
    a, y = _checked(first, mos)
    b, _ = _checked(second, mos)

    def difference(rows: NDArray[np.intp]) -> float | None:
        one, other = measure(a[rows], y[rows]), measure(b[rows], y[rows])
        return None if one is None or other is None else one - other

    value = difference(np.arange(len(y)))
    drawn = [difference(rows) for rows in _resampled(contents, resamples, seed)]
    return _estimate(value, drawn, contents, why_undefined(a, y) or why_undefined(b, y))


def _checked(predictions: ArrayLike, mos: ArrayLike) -> tuple[Numbers, Numbers]:
    x, y = np.asarray(predictions, dtype=np.float64), np.asarray(mos, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected as many predictions as labels, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("predictions and labels have to be finite numbers: leave out what has no score")
    return x, y


def _resampled(contents: Sequence[str], resamples: int, seed: int) -> list[NDArray[np.intp]]:
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    groups = [np.flatnonzero(content_of == index) for index in range(len(names))]
    rng = np.random.default_rng(seed)
    draws = (rng.integers(len(groups), size=len(groups)) for _ in range(resamples)) if groups else ()
    return [np.concatenate([groups[index] for index in draw]) for draw in draws]


def _estimate(
    value: float | None, drawn: Sequence[float | None], contents: Sequence[str], undefined: str | None
) -> Estimate:
    n, groups = len(contents), len(set(contents))
    defined = [figure for figure in drawn if figure is not None]
    if value is None:
        return Estimate(None, None, None, n, undefined or "undefined")
    if groups < 2 or 2 * len(defined) < len(drawn):
        return Estimate(value, None, None, n, f"no interval: {groups} contents are too few to resample")
    low, high = np.percentile(defined, [2.5, 97.5])
    note = f"only {groups} contents: the interval is rough" if groups < FEW_CONTENTS else ""
    return Estimate(value, float(low), float(high), n, note)


def _logistic(x: Numbers, upper: float, lower: float, centre: float, width: float) -> Numbers:
    return (upper - lower) * expit((x - centre) / max(abs(width), 1e-9)) + lower


def _fit(x: Numbers, y: Numbers, width: float) -> Numbers | None:
    try:
        fit, _ = curve_fit(_logistic, x, y, p0=[y.max(), y.min(), 0.0, width], maxfev=5000)
    except RuntimeError:  # what SciPy raises when it does not converge
        return None
    return fit if np.isfinite(fit).all() else None


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
