"""95 % intervals of a figure: the delete-one-content jackknife with Student's t, paired for differences.

Images of one content are not independent, so contents are left out, each with all of its images. A correlation is
taken to Fisher's z = atanh(r), in which its error is nearly symmetric; around z, the variance of the values without
each of G contents is ``(G - 1) / G * sum((z_g - z)^2)`` and the interval ``z +- t(G - 1) * sqrt(variance)``, taken
back (Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 11). The percentiles of a bootstrap, used more
often, cover far too little with few contents: ``eval/research/interval_coverage.py`` measures both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from agenticiqa.eval.logistic import Curve, fit_logistic
from agenticiqa.eval.metrics import Numbers, checked, order_codes, plcc, ranks_of_codes, rmse, srcc, why_undefined

Measure = Callable[[Numbers, Numbers], float | None]

FEWEST_CONTENTS = 4
MOST_BLOCKS = 200  # more contents than that are left out in so many blocks, drawn at random with a fixed seed
CONFIDENCE = 0.95
Z = 1.959964  # the normal quantile of that confidence
COMPLETE = 1 - 1e-9  # a correlation that is taken as 1, where Fisher's z has no end
NOT_FITTED = "too few images to fit a curve: this is the raw PLCC"


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval.

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


def interval(measure: Measure, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """A correlation, in [-1, 1], with its interval over contents. Raises ValueError as ``metrics.checked`` does."""
    x, y = checked(predictions, mos)
    figure = _on_rows(measure, x, y)
    blocks = blocks_of(contents)
    value = figure(np.arange(len(x)))
    return correlation_interval(value, _left_out(figure, value, blocks), len(x), why_undefined(x, y))


def correlation_interval(
    value: float | None, without: Sequence[float | None], n: int, undefined: str | None = None
) -> Interval:
    """A correlation of ``n`` images with its interval, from its values ``without`` each block of contents."""
    found = _jackknife(value, without, n, undefined, fisher_z, lambda z: float(np.tanh(z)))
    if found.low is not None and found.value is not None and abs(found.value) >= COMPLETE:
        return Interval(found.value, None, None, found.n, "no interval: the agreement is complete")
    return found


def error_interval(measure: Measure, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """An error of at least 0, such as the mean absolute one, with its interval. Raises as ``interval`` does."""
    x, y = checked(predictions, mos)
    undefined = None if len(x) else "no images"
    figure = _on_rows(measure, x, y)
    value = figure(np.arange(len(x)))
    without = _left_out(figure, value, blocks_of(contents))
    return _jackknife(value, without, len(x), undefined, _as_it_is, lambda e: max(e, 0.0))


def fitted_plcc_interval(predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """The PLCC after ``logistic.fit_logistic``, which is fitted once, on all images.

    Where no curve can be fitted it is the raw PLCC, and ``note`` says so.
    """
    return plcc_after(fit_logistic(predictions, mos), predictions, mos, contents)


def plcc_after(curve: Curve | None, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """The PLCC after a curve that was fitted to all images; it keeps its minus where the curve falls."""
    x, _ = checked(predictions, mos)
    fitted = x if curve is None else -curve(x) if curve.falls else curve(x)
    result = interval(plcc, fitted, mos, contents)
    if curve or result.value is None:
        return result
    return replace(result, note="; ".join(filter(None, (NOT_FITTED, result.note))))


def rmse_after(curve: Curve | None, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """The RMSE after a curve that was fitted to all images, on the scale of the opinions; none without a curve."""
    x, y = checked(predictions, mos)
    if curve is None:
        return Interval(None, None, None, len(x), why_undefined(x, y) or "too few images to fit a curve")
    return error_interval(rmse, curve(x), mos, contents)


def difference_interval(
    measure: Measure, first: ArrayLike, second: ArrayLike, mos: ArrayLike, contents: Sequence[str]
) -> Interval:
    """The measure of ``first`` minus that of ``second`` on the same images, without the same contents (paired)."""
    a, y = checked(first, mos)
    b, _ = checked(second, mos)
    one, other = _on_rows(measure, a, y), _on_rows(measure, b, y)

    def difference(rows: NDArray[np.intp]) -> float | None:
        here, there = one(rows), other(rows)
        return None if here is None or there is None else here - there

    value = difference(np.arange(len(a)))
    without = _left_out(difference, value, blocks_of(contents))
    return _jackknife(value, without, len(a), why_undefined(a, y) or why_undefined(b, y), _as_it_is, _as_it_is)


def wilson(count: float, n: float) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share, 0..1; (0, 1) without any trial."""
    if n == 0:
        return 0.0, 1.0
    share, spread = count / n, Z**2 / n
    middle, half = share + spread / 2, Z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def accuracy(hits: Sequence[bool], contents: Sequence[str]) -> Interval:
    """The share of hits, 0..1, with its 95 % interval: Wilson's, at the number of questions that contents are worth.

    Questions about one content are not independent. As for proportions of cluster samples (Korn and Graubard 1998, with
    Wilson's interval as in Franco et al. 2019), the number of questions is divided by the design effect, the variance
    between contents over that of independent questions and at least 1, and by (t / z) squared for the few contents from
    which it is estimated. Where all or none are right there is no variance, and the contents count. Without questions
    it is undefined; under ``FEWEST_CONTENTS`` contents it has no interval.
    """
    n = len(hits)
    if n == 0:
        return Interval(None, None, None, 0, "no questions")
    found = np.asarray(hits, float)
    share = float(found.mean())
    _, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    count = int(content_of.max()) + 1
    if count < FEWEST_CONTENTS:
        return Interval(share, None, None, n, f"too few contents for an interval ({count}, at least {FEWEST_CONTENTS})")
    worth = float(n)
    if 0 < share < 1:
        residuals = np.bincount(content_of, found - share)
        between = count / (count - 1) * float(np.square(residuals).sum()) / n**2
        worth /= max(1.0, between / (share * (1 - share) / n))
        worth *= min(1.0, (Z / float(student.ppf((1 + CONFIDENCE) / 2, count - 1))) ** 2)
    else:
        worth = float(count)
    low, high = wilson(share * worth, worth)
    return Interval(share, low, high, n)


def fisher_z(correlation: float) -> float:
    """Fisher's z of a correlation in [-1, 1]; a complete one counts as ``COMPLETE``."""
    return float(np.arctanh(np.clip(correlation, -COMPLETE, COMPLETE)))


def _as_it_is(value: float) -> float:
    return value


def _on_rows(measure: Measure, x: Numbers, y: Numbers) -> Callable[[NDArray[np.intp]], float | None]:
    """The measure of a part of the images; a rank correlation is not sorted anew for each part."""
    if measure is srcc:
        first, second = order_codes(x), order_codes(y)
        return lambda rows: plcc(ranks_of_codes(first[rows]), ranks_of_codes(second[rows]))
    return lambda rows: measure(x[rows], y[rows])


def _left_out(
    figure: Callable[[NDArray[np.intp]], float | None], value: float | None, blocks: NDArray[np.intp]
) -> list[float | None]:
    """The figure without each block; nothing where it is undefined, or where there are too few."""
    count = int(blocks.max()) + 1 if len(blocks) else 0
    if value is None or count < FEWEST_CONTENTS:
        return [None] * count
    return [figure(np.flatnonzero(blocks != block)) for block in range(count)]


def _jackknife(
    value: float | None,
    without: Sequence[float | None],
    n: int,
    undefined: str | None,
    onto: Callable[[float], float],
    back: Callable[[float], float],
) -> Interval:
    if value is None:
        return Interval(None, None, None, n, undefined or "undefined")
    count = len(without)
    if count < FEWEST_CONTENTS:
        return Interval(value, None, None, n, f"too few contents for an interval ({count}, at least {FEWEST_CONTENTS})")
    defined = [onto(each) for each in without if each is not None]
    if len(defined) < count:
        return Interval(value, None, None, n, "too few contents for an interval: the figure rests on one of them")
    center = onto(value)
    variance = (count - 1) / count * float(np.square(np.array(defined) - center).sum())
    half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) * variance**0.5
    return Interval(value, back(center - half), back(center + half), n)


def blocks_of(contents: Sequence[str]) -> NDArray[np.intp]:
    """The block of each image, from 0: its content, or where there are too many a block of contents."""
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    if len(names) <= MOST_BLOCKS:
        return content_of
    order = np.random.default_rng(0).permutation(len(names))
    return (order % MOST_BLOCKS)[content_of]
