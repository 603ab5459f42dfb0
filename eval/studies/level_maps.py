"""Maps from a model's margin (logit of "good" minus logit of "poor") to probabilities of the five levels."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from agenticiqa.eval.metrics import Numbers
from agenticiqa.eval.studies.fusion_fit import LEVEL_VALUES

LevelMap = Callable[[Numbers], Numbers]  # margins (n,) to probabilities (n, 5)
FitMap = Callable[[Numbers, Numbers], LevelMap]  # fitted to margins (n,) and qualities (n,) in 1..5

SMALLEST_SPREAD = 0.1  # of the Gaussian, in levels


def from_logits(margins: Numbers, sharpness: float = 1) -> Numbers:
    """The probabilities (n, 5) that the logits imply: "good" is level 4 and "poor" level 2, so half the margin a level.

    ``sharpness`` multiplies the margins: above 1 the model is more confident.
    """
    return probabilities(sharpness * margins[:, None] / 2 * (LEVEL_VALUES - 3))


def fit_gaussian(margins: Numbers, quality: Numbers) -> LevelMap:
    """A normal distribution around a least-squares line (slope at least 0), with the deviation of its residuals."""
    slope = max(np.cov(margins, quality)[0, 1] / max(np.var(margins, ddof=1), 1e-12), 0.0)
    offset = quality.mean() - slope * margins.mean()
    spread = max(float(np.std(quality - slope * margins - offset)), SMALLEST_SPREAD)
    return lambda m: probabilities(-0.5 * ((LEVEL_VALUES - slope * m[:, None] - offset) / spread) ** 2)


def fit_ordinal(margins: Numbers, quality: Numbers) -> LevelMap:
    """A cumulative logit model of the nearest level: one slope (at least 0) and four rising thresholds."""
    center, scale = margins.mean(), max(margins.std(), 1e-9)
    level = np.clip(np.rint(quality), 1, 5).astype(int) - 1

    def predicted(free: Numbers, m: Numbers) -> Numbers:
        thresholds = free[1] + np.concatenate([[0.0], np.cumsum(np.exp(free[2:]))])
        below = expit(thresholds - np.exp(free[0]) * ((m - center) / scale)[:, None])
        return np.clip(np.diff(below, axis=1, prepend=0.0, append=1.0), 1e-6, None)

    def loss(free: Numbers) -> float:
        # The weak penalty keeps a threshold near its start where no label reaches its level.
        likelihood = predicted(free, margins)[np.arange(len(level)), level]
        return float(-np.log(likelihood).sum() + 0.05 * np.sum((free - start) ** 2))

    start = np.array([-1.0, -3.0, 0.5, 0.5, 0.5])
    best = minimize(loss, start, method="L-BFGS-B").x
    return lambda m: (shares := predicted(best, m)) / shares.sum(axis=1, keepdims=True)


FIT_MAPS: dict[str, FitMap] = {
    "from logits": lambda margins, quality: from_logits,
    "gaussian": fit_gaussian,
    "ordinal": fit_ordinal,
}


def probabilities(logs: Numbers) -> Numbers:
    """Probabilities (n, 5) from log-probabilities up to a constant per row."""
    return np.exp(log_softmax(logs, axis=1))
