"""Fit an adapter of the learned scorer: ridge regression on its features, to scores or to pairs, and what it gains.

The regression is on the difference between the user's labels and the shipped scores ("correction"), or on the labels
by themselves ("alone"). Which of the two, the penalty, and how much its outcome and the shipped score count are chosen
on folds of contents. What is gained is measured on folds of contents that neither the regression nor that choice used.
Regressions are in the dual form: for n labels and 18,123 features only an n x n matrix is solved. Pairs are rows, too:
the features and shipped scores of the better image less those of the worse one, in a logistic regression without an
intercept (R. Bradley and M. Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import t as student

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.intervals import blocks_of
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES

Numbers = NDArray[np.float64]
Rows = NDArray[np.intp]

FEWEST_LABELS, FEWEST_CONTENTS = 15, 3
OUTER, INNER = 10, 5  # folds of what is measured, and of what is chosen
REPEATS = 4  # partitions of pairs that share images, which one alone mostly puts into two folds
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1)  # relative to the mean squared feature, for one label
WAYS = ("correction", "alone")
ALONE = 0.9  # of the cost of the best correction: what labels alone must stay below, as a correction is the safer way
STEEPNESS = 1.5  # logits of a preference for each level of difference: people differ by about .8 levels of one image
STEPS, STEADY, LEAST_CURVATURE = 30, 1e-6, 1e-4  # of Newton's method
TINY = 1e-12
USUAL_STD, LEFT_STD = 1.0, 0.5  # levels: of the ratings of one image, and of what features cannot explain of a mean
ADDS, FOLLOWS, NEARER = 0.9, 0.975, 0.99  # confidence, one-sided, of what ``helps`` asks for


@dataclass(frozen=True)
class Given:
    """N labels: ``features`` (N, F), ``shipped`` scores (N,), ``target`` opinions on 1..5 (N,) and ``weight`` (N,).

    Of ``pairs`` the first two are differences, the better image less the worse, and the target is 1. ``contents`` are
    the two contents of each label, (N, 2): equal ones for a score.
    """

    features: NDArray[np.float32]
    shipped: Numbers
    target: Numbers
    weight: Numbers
    contents: NDArray[np.str_]
    pairs: bool = False


@dataclass(frozen=True)
class Choice:
    """How labels are used: the way, the penalty, and how a score is made of the shipped and the regressed one."""

    way: str
    penalty: float
    level: float = 0.0
    shipped: float = 0.0
    regressed: float = 1.0


@dataclass(frozen=True)
class AdapterFit:
    """A fitted score: ``level``, a share ``shipped`` of the shipped score, and ``weights`` (F,) of the features.

    ``held_out`` (N,) are the adapted scores of the labels, by those of other folds; NaN for pairs that no partition
    held out.
    """

    choice: Choice
    weights: NDArray[np.float32]
    level: float
    shipped: float
    held_out: Numbers


def label_weights(std: Sequence[float | None], raters: Sequence[float | None]) -> Numbers:
    """How much each label counts, (N,), with the mean 1: by the variance of a mean of so many ratings.

    ``std`` is the standard deviation of an image's ratings, in levels; what is not known is 1 level, and one rater.
    """
    noise = [(USUAL_STD if s is None else s) ** 2 / (r or 1.0) for s, r in zip(std, raters, strict=True)]
    found = 1 / (LEFT_STD**2 + np.array(noise))
    return found / found.mean()


def fit_adapter(given: Given) -> AdapterFit:
    """Fit an adapter to all labels, and predict each label from those of other contents."""
    kernel = (given.features @ given.features.T).astype(np.float64) / given.features.shape[1]
    rows = np.arange(len(given.weight))
    total, times = np.zeros(len(rows)), np.zeros(len(rows))
    for train, test in _folds(given, rows, OUTER, seed=0):
        total[test] += _predicted(given, kernel, train, test, _chosen(given, kernel, train))
        times[test] += 1
    choice = _chosen(given, kernel, rows)
    dual, level = _solved(given, kernel, rows, choice)
    weights = (choice.regressed * dual @ given.features / given.features.shape[1]).astype(np.float32)
    shipped = choice.shipped + choice.regressed * (choice.way == "correction")
    level = choice.level + choice.regressed * level
    return AdapterFit(choice, weights, level, shipped, np.where(times > 0, total / np.maximum(times, 1), np.nan))


def helps(given: Given, found: Numbers) -> bool:
    """Whether held-out adapted scores (N,) follow the labels, and add to what the shipped ones say or are nearer.

    They add if the labels depend on them beside the shipped scores, by a regression with errors clustered by content.
    Random labels do not: scores that are all alike have a small error, but follow nothing.
    """
    y, old, new, root = (given.target, given.shipped, found, np.sqrt(given.weight))
    if not given.pairs:
        y, old, new = (each - np.average(each, weights=given.weight) for each in (y, old, new))
    y, old, new = y * root, old * root, new * root
    blocks = blocks_of(given.contents[:, 0])
    beside = new - old * _ratio(old @ new, old @ old)
    adds, own = _t(beside, y - old * _ratio(old @ y, old @ old), blocks), _t(new, y, blocks)
    nearer = 0.0
    if not given.pairs:
        gain = given.weight * ((given.shipped - given.target) ** 2 - (found - given.target) ** 2)
        nearer = _t(np.ones(len(gain)), gain, blocks)
    limit = {share: student.ppf(share, blocks.max()) for share in (ADDS, FOLLOWS, NEARER)}
    return bool(own > limit[FOLLOWS] and (adds > limit[ADDS] or (adds > 0 and nearer > limit[NEARER])))


def conformal_spread(errors: Numbers) -> float:
    """The deviation of which the central 80 % of a normal distribution are as wide as the held-out errors ask for.

    That is the split-conformal quantile of |errors| (V. Vovk et al., "Algorithmic Learning in a Random World", 2005).
    """
    place = min(len(errors), math.ceil(0.8 * (len(errors) + 1))) - 1
    return max(float(np.sort(np.abs(errors))[place]) / NORMAL_QUANTILES["80"], 0.05)


def _folds(given: Given, rows: Rows, count: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Rows to train on and to test with: no content of the one is among those of the other."""
    names, places = np.unique(given.contents[rows], return_inverse=True)
    first, second = places.reshape(-1, 2).T
    shared = bool((first != second).any())
    for repeat in range(REPEATS if shared else 1):
        fold_of = folds_by_content(names.tolist(), count // 2 if shared else count, seed + repeat, dealt=True)
        one, other = fold_of[first], fold_of[second]
        for fold in np.unique(fold_of):
            train, test = rows[(one != fold) & (other != fold)], rows[(one == fold) & (other == fold)]
            if len(train) and len(test):
                yield train, test


def _chosen(given: Given, kernel: Numbers, rows: Rows) -> Choice:
    """The way and the penalty that cost least on held-out folds of some labels, with the line that fits best there."""
    parts = list(_folds(given, rows, INNER, seed=1))
    tested = np.concatenate([test for _, test in parts]) if parts else rows[:0]
    costs: dict[Choice, float] = {}
    found: dict[Choice, Numbers] = {}
    for way, penalty in product(WAYS, PENALTIES):
        choice = Choice(way, penalty)
        each = [_predicted(given, kernel, train, test, choice) for train, test in parts]
        found[choice] = np.concatenate(each) if each else np.zeros(0)
        costs[choice] = _cost(given, found[choice], tested) / (ALONE if way == "alone" else 1.0)
    best = min(costs, key=lambda choice: costs[choice])
    if given.pairs or not len(tested):
        return best
    columns = np.stack([given.shipped[tested], found[best], given.target[tested]], axis=1)
    middle = np.average(columns, axis=0, weights=given.weight[tested])
    centered = (columns - middle) * np.sqrt(given.weight[tested])[:, None]
    (shipped, regressed), _ = nnls(centered[:, :2], centered[:, 2])
    level = float(middle @ (-shipped, -regressed, 1.0))
    return replace(best, level=level, shipped=float(shipped), regressed=float(regressed))


def _cost(given: Given, found: Numbers, rows: Rows) -> float:
    """The squared errors of predictions, of pairs their negative log-likelihood."""
    each = np.logaddexp(0, -STEEPNESS * found) if given.pairs else (found - given.target[rows]) ** 2
    return float(each @ given.weight[rows])


def _predicted(given: Given, kernel: Numbers, train: Rows, test: Rows, choice: Choice) -> Numbers:
    """The adapted scores, or their differences in pairs, of the rows ``test`` by those of ``train``."""
    dual, level = _solved(given, kernel, train, choice)
    regressed = kernel[np.ix_(test, train)] @ dual + level + _offset(given, test, choice)
    found = choice.level + choice.shipped * given.shipped[test] + choice.regressed * regressed
    return found if given.pairs else np.clip(found, 1.0, 5.0)


def _solved(given: Given, kernel: Numbers, rows: Rows, choice: Choice) -> tuple[Numbers, float]:
    """The dual coefficients (rows,) of the regression fitted to some labels, and its level."""
    own, weight, offset = kernel[np.ix_(rows, rows)], given.weight[rows], _offset(given, rows, choice)
    if not given.pairs:
        target = given.target[rows] - offset
        level = float(np.average(target, weights=weight))
        return np.linalg.solve(own + np.diag(choice.penalty / weight), target - level), level
    dual = np.zeros(len(rows))
    for _ in range(STEPS):  # Newton's method
        change = own @ dual
        wrong = 1 / (1 + np.exp(np.clip(STEEPNESS * (offset + change), -30, 30)))
        curvature = np.maximum(weight * wrong * (1 - wrong) * STEEPNESS**2, LEAST_CURVATURE)
        wanted = change + weight * wrong * STEEPNESS / curvature
        before, dual = dual, np.linalg.solve(own + np.diag(choice.penalty / curvature), wanted)
        if np.abs(dual - before).max() < STEADY:
            break
    return dual, 0.0


def _offset(given: Given, rows: Rows, choice: Choice) -> Numbers:
    return given.shipped[rows] if choice.way == "correction" else np.zeros(len(rows))


def _t(x: Numbers, y: Numbers, blocks: Rows) -> float:
    """Student's t of the slope of a line through 0, with errors clustered by block."""
    square, count = float(x @ x), int(blocks.max()) + 1
    slope = _ratio(x @ y, square)
    error = math.sqrt(count / (count - 1) * float(np.square(np.bincount(blocks, x * (y - slope * x))).sum()))
    return _ratio(slope * square, error)


def _ratio(a: Any, b: Any) -> float:
    return float(a / b) if b > TINY else 0.0
