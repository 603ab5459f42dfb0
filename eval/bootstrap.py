"""How sure a figure is: percentile bootstrap intervals, by content, and paired for differences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenticiqa.eval.metrics import NOT_FITTED, Numbers, checked, logistic_fit, plcc, why_undefined

Measure = Callable[[Numbers, Numbers], float | None]

RESAMPLES = 1000


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
    should; where every content has one image this is the plain bootstrap over images. A resample in which the figure
    is undefined is left out. ``resamples=0``: no interval. Raises as ``metrics.checked`` does.
    """
    x, y = checked(predictions, mos)
    value = measure(x, y)
    drawn = [measure(x[rows], y[rows]) for rows in _resampled(contents, resamples, seed)]
    return _estimate(value, drawn, contents, why_undefined(x, y))


def estimate_fitted(
    predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The fitted PLCC with its interval. The curve is fitted once, on all images, and kept for every resample."""
    fitted = logistic_fit(predictions, mos)
    result = estimate(plcc, predictions if fitted is None else fitted, mos, contents, resamples=resamples, seed=seed)
    if fitted is not None or result.value is None:
        return result
    return replace(result, note="; ".join(filter(None, (NOT_FITTED, result.note))))


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
    a, y = checked(first, mos)
    b, _ = checked(second, mos)

    def difference(rows: NDArray[np.intp]) -> float | None:
        one, other = measure(a[rows], y[rows]), measure(b[rows], y[rows])
        return None if one is None or other is None else one - other

    value = difference(np.arange(len(y)))
    drawn = [difference(rows) for rows in _resampled(contents, resamples, seed)]
    return _estimate(value, drawn, contents, why_undefined(a, y) or why_undefined(b, y))


def _resampled(contents: Sequence[str], resamples: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each resample; none where there is nothing to draw from."""
    _, content_of, sizes = np.unique(np.asarray(contents, dtype=str), return_inverse=True, return_counts=True)
    by_content = np.argsort(content_of, kind="stable")  # each content's rows stand together, from its start on
    starts = np.cumsum(sizes) - sizes
    rng = np.random.default_rng(seed)
    for _ in range(resamples if len(sizes) else 0):
        draw = rng.integers(len(sizes), size=len(sizes))
        ends = np.cumsum(sizes[draw])
        within = np.arange(ends[-1]) - np.repeat(ends - sizes[draw], sizes[draw])
        yield by_content[np.repeat(starts[draw], sizes[draw]) + within]


def _estimate(
    value: float | None, drawn: Sequence[float | None], contents: Sequence[str], undefined: str | None
) -> Estimate:
    n, groups = len(contents), len(set(contents))
    defined = [figure for figure in drawn if figure is not None]
    if value is None:
        return Estimate(None, None, None, n, undefined or "undefined")
    if not drawn:
        return Estimate(value, None, None, n)
    if groups < 2 or 2 * len(defined) < len(drawn):
        return Estimate(value, None, None, n, f"no interval: too few contents to resample ({groups})")
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(value, float(low), float(high), n)
