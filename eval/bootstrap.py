"""95 % intervals of a correlation: percentile bootstrap over contents, paired for differences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenticiqa.eval.metrics import Numbers, checked, logistic_fit, plcc, why_undefined

Measure = Callable[[Numbers, Numbers], float | None]

RESAMPLES = 1000
NOT_FITTED = "no logistic fit was found: this is the raw PLCC"


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % bootstrap interval.

    ``value`` is ``None`` where the figure is undefined, ``low`` and ``high`` where the interval is; ``note`` says why,
    or what else a reader has to know. ``n`` is the number of images.

    ``f"{interval:.3f}"`` is "0.812 [0.790, 0.834]", "0.812" without an interval and "-" without a value;
    ``f"{interval:+.3f}"``, for differences, has the signs.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    note: str = ""

    def __format__(self, spec: str) -> str:
        if self.value is None:
            return "-"
        value = format(self.value, spec)
        if self.low is None or self.high is None:
            return value
        return f"{value} [{format(self.low, spec)}, {format(self.high, spec)}]"


def interval(
    measure: Measure,
    predictions: ArrayLike,
    mos: ArrayLike,
    contents: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A measure with its bootstrap interval (percentiles 2.5 and 97.5).

    Contents are drawn with replacement, each with all of its images, because images of one content are not
    independent; where every content has one image this is the plain bootstrap over images. A resample in which the
    measure is undefined is left out. ``resamples=0``: no interval. Raises ValueError as ``metrics.checked`` does.
    """
    x, y = checked(predictions, mos)
    value = measure(x, y)
    drawn = [measure(x[rows], y[rows]) for rows in _resampled(contents, resamples, seed)]
    return _summary(value, drawn, contents, why_undefined(x, y))


def fitted_plcc_interval(
    predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The PLCC after ``metrics.logistic_fit``, which is fitted once, on all images, and kept for every resample.

    Where no fit is found it is the raw PLCC, and ``note`` says so.
    """
    fitted = logistic_fit(predictions, mos)
    result = interval(plcc, predictions if fitted is None else fitted, mos, contents, resamples=resamples, seed=seed)
    if fitted is not None or result.value is None:
        return result
    return replace(result, note="; ".join(filter(None, (NOT_FITTED, result.note))))


def difference_interval(
    measure: Measure,
    first: ArrayLike,
    second: ArrayLike,
    mos: ArrayLike,
    contents: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The measure of ``first`` minus that of ``second`` on the same images, both on the same resamples (paired)."""
    a, y = checked(first, mos)
    b, _ = checked(second, mos)

    def difference(rows: NDArray[np.intp]) -> float | None:
        one, other = measure(a[rows], y[rows]), measure(b[rows], y[rows])
        return None if one is None or other is None else one - other

    value = difference(np.arange(len(y)))
    drawn = [difference(rows) for rows in _resampled(contents, resamples, seed)]
    return _summary(value, drawn, contents, why_undefined(a, y) or why_undefined(b, y))


def _resampled(contents: Sequence[str], resamples: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each resample; none where there is nothing to draw from."""
    _, content_of, sizes = np.unique(np.asarray(contents, dtype=str), return_inverse=True, return_counts=True)
    by_content = np.argsort(content_of, kind="stable")  # the rows grouped by content; each group begins at its start
    starts = np.cumsum(sizes) - sizes
    rng = np.random.default_rng(seed)
    for _ in range(resamples if len(sizes) else 0):
        draw = rng.integers(len(sizes), size=len(sizes))
        ends = np.cumsum(sizes[draw])
        within = np.arange(ends[-1]) - np.repeat(ends - sizes[draw], sizes[draw])
        yield by_content[np.repeat(starts[draw], sizes[draw]) + within]


def _summary(
    value: float | None, drawn: Sequence[float | None], contents: Sequence[str], undefined: str | None
) -> Interval:
    n, groups = len(contents), len(set(contents))
    defined = [figure for figure in drawn if figure is not None]
    if value is None:
        return Interval(None, None, None, n, undefined or "undefined")
    if not drawn:
        return Interval(value, None, None, n)
    if groups < 2 or 2 * len(defined) < len(drawn):
        return Interval(value, None, None, n, f"no interval: too few contents to resample ({groups})")
    low, high = np.percentile(defined, [2.5, 97.5])
    return Interval(value, float(low), float(high), n)
