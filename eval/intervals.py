"""95 % intervals of a figure: the delete-one-content jackknife with Student's t, paired for differences.

Images of one content are not independent, so contents are left out, each with all of its images. A correlation is
taken to Fisher's z = atanh(r), in which its error is nearly symmetric; around z, the variance of the values without
each of G contents is ``(G - 1) / G * sum((z_g - z)^2)`` and the interval ``z +- t(G - 1) * sqrt(variance)``, taken
back (Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 11). The percentiles of a bootstrap, used more
often, cover far too little with few contents: ``eval/studies/interval_coverage.py`` measures both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from agenticiqa.eval.metrics import Numbers, checked, logistic_fit, plcc, why_undefined

Measure = Callable[[Numbers, Numbers], float | None]

FEWEST_CONTENTS = 4
MOST_BLOCKS = 200  # more contents than that are left out in so many blocks, drawn at random with a fixed seed
CONFIDENCE = 0.95
Z = 1.959964  # the normal quantile of that confidence
COMPLETE = 1 - 1e-9  # a correlation that is taken as 1, where Fisher's z has no end
NOT_FITTED = "no logistic fit was found: this is the raw PLCC"


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
    found = _jackknife(
        lambda rows: measure(x[rows], y[rows]), contents, why_undefined(x, y), fisher_z, lambda z: float(np.tanh(z))
    )
    if found.low is not None and found.value is not None and abs(found.value) >= COMPLETE:
        return Interval(found.value, None, None, found.n, "no interval: the agreement is complete")
    return found


def error_interval(measure: Measure, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """An error of at least 0, such as the mean absolute one, with its interval. Raises as ``interval`` does."""
    x, y = checked(predictions, mos)
    undefined = None if len(x) else "no images"
    return _jackknife(lambda rows: measure(x[rows], y[rows]), contents, undefined, _as_it_is, lambda e: max(e, 0.0))


def fitted_plcc_interval(predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """The PLCC after ``metrics.logistic_fit``, which is fitted once, on all images.

    Where no fit is found it is the raw PLCC, and ``note`` says so.
    """
    fitted = logistic_fit(predictions, mos)
    result = interval(plcc, predictions if fitted is None else fitted, mos, contents)
    if fitted is not None or result.value is None:
        return result
    return replace(result, note="; ".join(filter(None, (NOT_FITTED, result.note))))


def difference_interval(
    measure: Measure, first: ArrayLike, second: ArrayLike, mos: ArrayLike, contents: Sequence[str]
) -> Interval:
    """The measure of ``first`` minus that of ``second`` on the same images, without the same contents (paired)."""
    a, y = checked(first, mos)
    b, _ = checked(second, mos)

    def difference(rows: NDArray[np.intp]) -> float | None:
        one, other = measure(a[rows], y[rows]), measure(b[rows], y[rows])
        return None if one is None or other is None else one - other

    return _jackknife(difference, contents, why_undefined(a, y) or why_undefined(b, y), _as_it_is, _as_it_is)


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share, 0..1; (0, 1) without any trial."""
    if n == 0:
        return 0.0, 1.0
    share, spread = count / n, Z**2 / n
    middle, half = share + spread / 2, Z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def fisher_z(correlation: float) -> float:
    """Fisher's z of a correlation in [-1, 1]; a complete one counts as ``COMPLETE``."""
    return float(np.arctanh(np.clip(correlation, -COMPLETE, COMPLETE)))


def _as_it_is(value: float) -> float:
    return value


def _jackknife(
    figure: Callable[[NDArray[np.intp]], float | None],
    contents: Sequence[str],
    undefined: str | None,
    onto: Callable[[float], float],
    back: Callable[[float], float],
) -> Interval:
    n = len(contents)
    value = figure(np.arange(n))
    if value is None:
        return Interval(None, None, None, n, undefined or "undefined")
    blocks = _blocks(contents)
    count = int(blocks.max()) + 1 if n else 0
    if count < FEWEST_CONTENTS:
        return Interval(value, None, None, n, f"too few contents for an interval ({count}, at least {FEWEST_CONTENTS})")
    without = [figure(np.flatnonzero(blocks != block)) for block in range(count)]
    defined = [onto(each) for each in without if each is not None]
    if len(defined) < count:
        return Interval(value, None, None, n, "too few contents for an interval: the figure rests on one of them")
    center = onto(value)
    variance = (count - 1) / count * float(np.square(np.array(defined) - center).sum())
    half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) * variance**0.5
    return Interval(value, back(center - half), back(center + half), n)


def _blocks(contents: Sequence[str]) -> NDArray[np.intp]:
    """The block of each image, from 0: its content, or where there are too many a block of contents."""
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    if len(names) <= MOST_BLOCKS:
        return content_of
    order = np.random.default_rng(0).permutation(len(names))
    return (order % MOST_BLOCKS)[content_of]
