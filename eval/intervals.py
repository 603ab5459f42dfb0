"""Compute 95 % intervals by the delete-one-scene jackknife with Student's t, paired for differences.

Images of one scene are not independent, so each scene is deleted with all of its images. A correlation is
transformed to Fisher's z = atanh(r), where its error is nearly symmetric. From the values without each of G scenes,
the variance is ``(G - 1) / G * sum((z_g - z)^2)``, and the interval ``z +- t * sqrt(variance)`` is transformed back
(Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 11). Scenes vary with long tails, so the variance
of a few scenes is less certain than that of normal values. Student's t therefore has (G - 1) / 2 degrees of freedom,
at least 2; for differences, in which the tails cancel, G - 1. ``tests/eval/test_intervals.py`` simulates the coverage.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from agenticiqa.eval.logistic import Curve, fit_logistic
from agenticiqa.eval.metrics import (
    Numbers,
    average_ranks,
    checked,
    linear_correlation,
    places_of,
    plcc,
    rmse,
    srcc,
    why_undefined,
)

Measure = Callable[[Numbers, Numbers], float | None]
Fit = Callable[..., Curve | None]  # predictions, MOS, and a curve near the result, if known

BOUNDLESS = 100.0  # multiple of an RMSE; a wider interval says nothing, and fills a table with digits
FEWEST_CONTENTS = 4
MOST_BLOCKS = 200  # number of random blocks (fixed seed) in which more scenes than that are deleted
CONFIDENCE = 0.95
Z = 1.959964  # the normal quantile of that confidence
FEW_CONTENTS = 25  # scenes up to which the curve is refitted without each one
COMPLETE = 1 - 1e-9  # a correlation that counts as 1, where Fisher's z is infinite
WIDENED = "interval widened to that of PLCC raw, which includes 0, because a curve also follows chance"
NOT_FITTED = "too few images to fit a curve, so this is the raw PLCC"


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval.

    ``value`` is ``None`` if the figure is undefined, ``low`` and ``high`` if the interval is undefined. ``note`` says
    why, or what else a reader needs. ``n`` is the number of images.

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
    """Return a correlation in [-1, 1] with its interval over scenes. Raises ValueError like ``metrics.checked``."""
    x, y = checked(predictions, mos)
    figure = _on_rows(measure, x, y)
    blocks = blocks_of(contents)
    value = figure(np.arange(len(x)))
    return correlation_interval(value, jackknife(figure, value, blocks), len(x), why_undefined(x, y))


def correlation_interval(
    value: float | None, without: Sequence[float | None], n: int, undefined: str | None = None
) -> Interval:
    """Return a correlation of ``n`` images with its interval, from its values ``without`` each block of scenes."""
    if value is not None and any(other is not None and abs(other) >= COMPLETE for other in (value, *without)):
        where = "" if abs(value) >= COMPLETE else " when one of the scenes is left out"
        return Interval(value, None, None, n, f"no interval: the correlation is perfect{where}")
    return _jackknife(value, without, n, undefined, fisher_z, lambda z: float(np.tanh(z)), tails=True)


def share_interval(value: float | None, without: Sequence[float | None], n: int) -> Interval:
    """Return a share, 0..1, with its interval from its values ``without`` each block of scenes: Wilson's.

    The number of trials is chosen to match the variance of the jackknife, then divided by (t / z) squared as in
    ``accuracy``. Without variance, or if all or none are right, each block counts as one trial.
    """
    estimate = _jackknife(value, without, n, None, _unchanged, _unchanged)
    if value is None or estimate.low is None:
        return estimate
    count = len(without)
    variance = (count - 1) / count * sum((other - value) ** 2 for other in without if other is not None)
    effective = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else float(count)
    effective *= min(1.0, (Z / _quantile(count, True)) ** 2)
    low, high = wilson(value * effective, effective)
    return replace(estimate, low=low, high=high)


def error_interval(measure: Measure, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """Return an error of at least 0, such as the mean absolute one, with its interval. Raises as ``interval`` does."""
    x, y = checked(predictions, mos)
    undefined = None if len(x) else "no images"
    figure = _on_rows(measure, x, y)
    value = figure(np.arange(len(x)))
    without = jackknife(figure, value, blocks_of(contents))
    return _jackknife(value, without, len(x), undefined, _unchanged, lambda e: max(e, 0.0), tails=True)


def rmse_interval(predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """Return the RMSE with its interval, computed on a log scale, as errors multiply. Raises like ``interval``."""
    x, y = checked(predictions, mos)
    figure = _on_rows(rmse, x, y)
    value = figure(np.arange(len(x)))
    return _rmse(value, jackknife(figure, value, blocks_of(contents)), len(x), None if len(x) else "no images")


def fitted_plcc_interval(predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> Interval:
    """Return the PLCC after ``logistic.fit_logistic``; see ``after_curve``."""
    return after_curve(fit_logistic, predictions, mos, contents)[0]


def after_curve(fit: Fit, predictions: ArrayLike, mos: ArrayLike, contents: Sequence[str]) -> tuple[Interval, Interval]:
    """Return the PLCC and the RMSE (on the scale of MOS) after a curve that ``fit`` fitted to all images.

    The PLCC is negative if the curve falls. If no curve can be fitted, the result is the raw PLCC without an RMSE, and
    ``note`` says so. With up to ``FEW_CONTENTS`` scenes the curve is refitted without each of them.

    The curve fit also follows chance, which biases PLCC upward. If the raw PLCC's interval includes 0, this interval
    is therefore extended to include it, and ``note`` says so.
    """
    x, y = checked(predictions, mos)
    n, blocks, curve, raw = len(x), blocks_of(contents), fit(x, y), interval(plcc, x, y, contents)
    if curve is None:
        note = "; ".join(filter(None, (NOT_FITTED, raw.note)))
        none = Interval(None, None, None, n, why_undefined(x, y) or "too few images to fit a curve")
        return (raw if raw.value is None else replace(raw, note=note)), none
    value, error, count = plcc(curve.directed(x), y), rmse(curve(x), y), int(blocks.max()) + 1
    if FEWEST_CONTENTS <= count <= FEW_CONTENTS:
        kept = [np.flatnonzero(blocks != block) for block in range(count)]
        curves = [fit(x[rows], y[rows], curve) for rows in kept]
        folds = [(curve, x[rows], y[rows]) for curve, rows in zip(curves, kept, strict=True)]
        correlations = [None if curve is None else plcc(curve.directed(a), b) for curve, a, b in folds]
        errors = [None if curve is None else rmse(curve(a), b) for curve, a, b in folds]
    else:
        correlations = jackknife(_on_rows(plcc, curve.directed(x), y), value, blocks)
        errors = jackknife(_on_rows(rmse, curve(x), y), error, blocks)
    correlation = correlation_interval(value, correlations, n)
    ends = correlation.low, correlation.high, raw.low, raw.high
    known = [end for end in ends if end is not None]
    if len(known) == len(ends) and known[2] <= 0 <= known[3]:
        correlation = replace(correlation, low=min(known), high=max(known), note=WIDENED)
    return correlation, _rmse(error, errors, n, None)


def difference_interval(
    measure: Measure, first: ArrayLike, second: ArrayLike, mos: ArrayLike, contents: Sequence[str]
) -> Interval:
    """Return the measure of ``first`` minus that of ``second`` with a paired interval over scenes."""
    a, y = checked(first, mos)
    b, _ = checked(second, mos)
    one, other = _on_rows(measure, a, y), _on_rows(measure, b, y)

    def difference(rows: NDArray[np.intp]) -> float | None:
        a_value, b_value = one(rows), other(rows)
        return None if a_value is None or b_value is None else a_value - b_value

    value = difference(np.arange(len(a)))
    without = jackknife(difference, value, blocks_of(contents))
    return _jackknife(value, without, len(a), why_undefined(a, y) or why_undefined(b, y), _unchanged, _unchanged)


def wilson(count: float, n: float) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share, 0..1; (0, 1) without any trial."""
    if n == 0:
        return 0.0, 1.0
    share, spread = count / n, Z**2 / n
    middle, half = share + spread / 2, Z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def accuracy(hits: Sequence[bool], contents: Sequence[str]) -> Interval:
    """Return the share of hits, 0..1, with Wilson's 95 % interval at the effective number of questions.

    Questions about one scene are not independent. As for proportions of cluster samples (Korn and Graubard 1998, with
    Wilson's interval as in Franco et al. 2019), the number of questions is divided by the design effect: the variance
    between scenes over that of independent questions, at least 1. It is also divided by (t / z) squared, as the
    effect is estimated from few scenes. If all or none are right, there is no variance, and each scene counts as
    one. The share is undefined without questions, and has no interval under ``FEWEST_CONTENTS`` scenes.
    """
    n = len(hits)
    if n == 0:
        return Interval(None, None, None, 0, "no questions")
    values = np.asarray(hits, float)
    share = float(values.mean())
    _, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    count = int(content_of.max()) + 1
    if count < FEWEST_CONTENTS:
        return Interval(share, None, None, n, f"too few scenes for an interval ({count}, at least {FEWEST_CONTENTS})")
    effective = float(n)
    if 0 < share < 1:
        residuals = np.bincount(content_of, values - share)
        between = count / (count - 1) * float(np.square(residuals).sum()) / n**2
        effective /= max(1.0, between / (share * (1 - share) / n))
        effective *= min(1.0, (Z / _quantile(count, False)) ** 2)
    else:
        effective = float(count)
    low, high = wilson(share * effective, effective)
    return Interval(share, low, high, n)


def fisher_z(correlation: float) -> float:
    """Return Fisher's z of a correlation in [-1, 1]; a perfect one counts as ``COMPLETE``."""
    return float(np.arctanh(np.clip(correlation, -COMPLETE, COMPLETE)))


def _unchanged(value: float) -> float:
    return value


def _rmse(value: float | None, without: Sequence[float | None], n: int, undefined: str | None) -> Interval:
    if value is not None and any(error is not None and error <= 0 for error in (value, *without)):
        return Interval(value, None, None, n, "no interval: the error is 0")
    interval = _jackknife(value, without, n, undefined, math.log, math.exp, tails=True)
    if value is not None and interval.high is not None and interval.high > BOUNDLESS * value:
        return Interval(value, None, None, n, "no interval: too few scenes to bound the error")
    return interval


def _on_rows(measure: Measure, x: Numbers, y: Numbers) -> Callable[[NDArray[np.intp]], float | None]:
    """Return the measure of a part of the images. For SRCC, the images are sorted once and not for each part."""
    if measure is srcc:
        first, second = places_of(x), places_of(y)
        return lambda rows: linear_correlation(average_ranks(first[rows]), average_ranks(second[rows]))
    if measure is plcc:
        return lambda rows: linear_correlation(x[rows], y[rows])
    return lambda rows: measure(x[rows], y[rows])


def jackknife(
    figure: Callable[[NDArray[np.intp]], float | None], value: float | None, blocks: NDArray[np.intp]
) -> list[float | None]:
    """Return the figure without each block; all are ``None`` if it is undefined or there are too few blocks."""
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
    *,
    tails: bool = False,
) -> Interval:
    if value is None:
        return Interval(None, None, None, n, undefined or "undefined")
    count = len(without)
    if count < FEWEST_CONTENTS:
        return Interval(value, None, None, n, f"too few scenes for an interval ({count}, at least {FEWEST_CONTENTS})")
    defined = [onto(other) for other in without if other is not None]
    if len(defined) < count:
        return Interval(value, None, None, n, "no interval: the value is undefined when one of the scenes is left out")
    at = onto(value)
    variance = (count - 1) / count * float(np.square(np.array(defined) - at).sum())
    half = _quantile(count, tails) * variance**0.5
    return Interval(value, back(at - half), back(at + half), n)


def _quantile(count: int, tails: bool) -> float:
    """Return Student's t of 95 % for a variance from this many blocks, with or without long ``tails``."""
    degrees = max(2.0, (count - 1) / 2) if tails else count - 1
    return float(student.ppf((1 + CONFIDENCE) / 2, degrees))


def blocks_of(contents: Sequence[str]) -> NDArray[np.intp]:
    """Return the block of each image, from 0: its scene, or where there are too many a block of scenes."""
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    if len(names) <= MOST_BLOCKS:
        return content_of
    order = np.random.default_rng(0).permutation(len(names))
    return (order % MOST_BLOCKS)[content_of]


def contents_text(count: int) -> str:
    """Describe what a jackknife deletes: the number of scenes, or that they are deleted in blocks."""
    return f"{count:,} scenes" + (f", in {MOST_BLOCKS} blocks" if count > MOST_BLOCKS else "")
