"""Fit an adapter of the learned scorer by ridge regression on its features, to scores or pairs, and measure its gain.

The target is either the difference between labels and shipped scores, or the labels alone. Folds of scenes choose
between the two, the penalty, and the weights of the regression and the shipped score. Other folds, used for neither,
measure the gain. Regressions are in the dual form, as labels are few and features many. A pair is also one row: the
better image minus the worse one, one level apart, without an intercept (least squares of pairs: X. Jiang et al.,
"Statistical ranking and combinatorial Hodge theory", Math. Programming 127, 2011).
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import t as student

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.intervals import blocks_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES

Numbers = NDArray[np.float64]
Rows = NDArray[np.intp]

OUTER, INNER = 10, 5  # outer folds that measure the gain, and inner folds that choose the regression
REPEATS = 4  # partitions of pairs; one partition puts the two images of most pairs into different folds
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1)  # penalties for one label, relative to the mean squared feature
ALONE = 0.9  # the labels alone are the target only if their error is below this share of a correction's
TINY = 1e-12
LEAST_SPREAD = 0.05  # levels; few labels can all be met by chance
USUAL_STD, RESIDUAL_STD = 1.0, 0.5  # deviations in levels: ratings of one image, MOS around the features' fit
ADDS, FOLLOWS, NEARER = 0.9, 0.975, 0.99  # one-sided confidence that ``helps`` requires
RULE = (
    f"Adapted scores must follow the labels ({FOLLOWS:.1%}, one-sided), and add to the shipped scores ({ADDS:.0%}) or "
    f"have a smaller error ({NEARER:.0%}; the intervals above have 95 %)"
)
NO_LOSS = -1.0  # minimum of Student's t of the added part if the error is smaller


class GivenLabels(NamedTuple):
    """N labels: ``features`` (N, F), ``shipped`` scores, ``target`` MOS on 1..5 and ``weight``, each (N,).

    For ``pairs``, features and scores are the better image's minus the worse one's, and the target is 1. ``contents``
    (N, 2) holds the scenes of both images; for a single score both are equal.
    """

    features: NDArray[np.float32]
    shipped: Numbers
    target: Numbers
    weight: Numbers
    contents: NDArray[np.str_]
    pairs: bool = False

    def at(self, rows: Rows) -> "GivenLabels":
        """Return a subset of the labels."""
        columns = (self.features[rows], self.shipped[rows], self.target[rows], self.weight[rows], self.contents[rows])
        return GivenLabels(*columns, self.pairs)


class AdapterFit(NamedTuple):
    """A fitted score: ``level`` + ``shipped`` * shipped score + ``dual`` (rows,) * products with ``rows``."""

    rows: Rows
    level: float
    shipped: float
    dual: NDArray[np.floating[Any]]


def label_weights(std: Sequence[float | None], raters: Sequence[float | None]) -> Numbers:
    """Return the weight (N,), with mean 1, of each label from the deviation (in levels) and number of its ratings.

    Raises UserError for a number of raters or a deviation below 0.
    """
    if any(number < 0 for number in (*std, *raters) if number is not None):
        raise UserError("the labels have a negative value in raters or mos_std: correct it")
    noise = [(USUAL_STD if s is None else s) ** 2 / (r or 1.0) for s, r in zip(std, raters, strict=True)]
    weights = 1 / (RESIDUAL_STD**2 + np.array(noise))
    return weights / weights.mean()


def fit_adapter(labels: GivenLabels) -> tuple[AdapterFit, NDArray[np.float32], Numbers]:
    """Return the fit to all labels, its feature weights (F,), and each label's score by a fit to other folds.

    The held-out score is NaN for pairs that no partition held out.
    """
    kernel = (labels.features @ labels.features.T).astype(np.float64) / labels.features.shape[1]
    rows = np.arange(len(labels.weight))
    total, times = np.zeros((2, len(rows)))
    for train, test in _folds(labels, rows, OUTER, seed=0):
        total[test] += _predicted(labels, kernel, _best(labels, kernel, train), test)
        times[test] += 1
    fit = _best(labels, kernel, rows)
    weights = (fit.dual @ labels.features / labels.features.shape[1]).astype(np.float32)
    return fit, weights, np.where(times > 0, total / np.maximum(times, 1), np.nan)


def helps(labels: GivenLabels, adapted: Numbers) -> bool:
    """Test if held-out scores (N,) correlate with the labels, and add to the shipped scores or have a smaller error.

    Random labels do not pass: constant scores have a small error, but no correlation.
    """
    columns = np.stack([labels.target, labels.shipped, adapted])
    if not labels.pairs:
        columns -= np.average(columns, axis=1, weights=labels.weight)[:, None]
    y, old, new = columns * np.sqrt(labels.weight)
    beside, rest = (column - old * _ratio(old @ column, old @ old) for column in (new, y))
    blocks = blocks_of(labels.contents[:, 0].tolist())
    gain = labels.weight * ((labels.shipped - labels.target) ** 2 - (adapted - labels.target) ** 2) * (not labels.pairs)
    follows, adds, nearer = _t(new, y, blocks), _t(beside, rest, blocks), _t(np.ones(len(y)), gain, blocks)
    limits = student.ppf((FOLLOWS, FOLLOWS if labels.pairs else ADDS, NEARER), len(y) - 1)
    return bool(follows > limits[0] and (adds > limits[1] or (adds > NO_LOSS and nearer > limits[2])))


def conformal_spread(errors: Numbers) -> float:
    """Return the deviation of a normal distribution that covers 80 % of held-out errors (N,) by its central 80 %.

    It is their split-conformal quantile (V. Vovk et al., "Algorithmic Learning in a Random World", 2005).
    """
    place = min(len(errors), math.ceil(0.8 * (len(errors) + 1))) - 1
    return max(float(np.sort(np.abs(errors))[place]) / NORMAL_QUANTILES["80"], LEAST_SPREAD)


def _folds(labels: GivenLabels, rows: Rows, count: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield rows to fit and rows to test that share no scene."""
    names, places = np.unique(labels.contents[rows], return_inverse=True)
    first, second = places.reshape(-1, 2).T
    shared = bool((first != second).any())
    for repeat in range(REPEATS if shared else 1):
        fold_of = folds_by_content(names.tolist(), count // 2 if shared else count, seed + repeat, dealt=True)
        for fold in np.unique(fold_of):
            one, other = fold_of[first] == fold, fold_of[second] == fold
            if (one & other).any() and not (one | other).all():
                yield rows[~(one | other)], rows[one & other]


def _best(labels: GivenLabels, kernel: Numbers, rows: Rows) -> AdapterFit:
    """Return the fit with the target, penalty and line that have the least squared error on held-out folds."""
    parts = list(_folds(labels, rows, INNER, seed=1))
    if not parts:
        return _solved(labels, kernel, rows, 1.0, PENALTIES[0])
    tested = np.concatenate([test for _, test in parts])
    root = np.sqrt(labels.weight[tested])
    lines: dict[tuple[float, float], tuple[float, Numbers, Numbers]] = {}
    for way in product((1.0, 0.0), PENALTIES):  # the share of the shipped score, and the penalty
        fits = [_predicted(labels, kernel, _solved(labels, kernel, train, *way), test) for train, test in parts]
        columns = np.stack([labels.shipped[tested], np.concatenate(fits), labels.target[tested]], axis=1)
        middle = np.zeros(3) if labels.pairs else np.average(columns, axis=0, weights=root**2)
        centered = (columns - middle) * root[:, None]
        shares, left = nnls(centered[:, :2], centered[:, 2])
        lines[way] = (left**2 / (1.0 if way[0] else ALONE), shares, middle)
    best = min(lines, key=lambda way: lines[way][0])
    fit, (_, (shipped, own), middle) = _solved(labels, kernel, rows, *best), lines[best]
    level = float(middle @ (-shipped, -own, 1.0))
    return AdapterFit(rows, level + own * fit.level, float(shipped + own * fit.shipped), own * fit.dual)


def _predicted(labels: GivenLabels, kernel: Numbers, fit: AdapterFit, test: Rows) -> Numbers:
    scores = fit.level + fit.shipped * labels.shipped[test] + kernel[np.ix_(test, fit.rows)] @ fit.dual
    return scores if labels.pairs else np.clip(scores, 1.0, 5.0)


def _solved(labels: GivenLabels, kernel: Numbers, rows: Rows, shipped: float, penalty: float) -> AdapterFit:
    """Return the ridge regression on the features, added to a share of the shipped score."""
    own, weight, offset = kernel[np.ix_(rows, rows)], labels.weight[rows], shipped * labels.shipped[rows]
    target = labels.target[rows] - offset
    level = 0.0 if labels.pairs else float(np.average(target, weights=weight))
    dual = np.linalg.solve(own + np.diag(penalty / weight), target - level).astype(np.float64)
    return AdapterFit(rows, level, shipped, dual)


def _t(x: Numbers, y: Numbers, blocks: Rows) -> float:
    """Return Student's t of the slope of a line through 0, with errors clustered by block."""
    square, count = float(x @ x), int(blocks.max()) + 1
    slope = _ratio(x @ y, square)
    error = math.sqrt(count / max(count - 1, 1) * float(np.square(np.bincount(blocks, x * (y - slope * x))).sum()))
    return _ratio(slope * square, error)


def _ratio(a: Any, b: Any) -> float:
    return float(a / b) if b > TINY else 0.0
