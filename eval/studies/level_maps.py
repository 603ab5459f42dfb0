"""From a model's margin between "good" and "poor" to probabilities over the five levels, as said or fitted."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from agenticiqa.eval.metrics import Numbers
from agenticiqa.eval.studies.fusion_fit import LEVELS

LevelMap = Callable[[Numbers], Numbers]  # margins (n,) to probabilities (n, 5)
MakeMap = Callable[[Numbers, Numbers], LevelMap]  # fitted to margins and qualities


def as_said(margins: Numbers, sharper: float = 1) -> Numbers:
    """The levels (n, 5) that the logits imply: "good" is level 4 and "poor" level 2, so half the margin per level."""
    return normalised(sharper * margins[:, None] / 2 * (LEVELS - 3))


def gaussian(margins: Numbers, quality: Numbers) -> LevelMap:
    """Levels around a straight line from margin to quality (never falling), as spread as its residuals."""
    slope = max(np.cov(margins, quality)[0, 1] / max(np.var(margins, ddof=1), 1e-12), 0.0)
    offset = quality.mean() - slope * margins.mean()
    spread = max(float(np.std(quality - slope * margins - offset)), 0.1)
    return lambda m: normalised(-0.5 * ((LEVELS - slope * m[:, None] - offset) / spread) ** 2)


def ordinal(margins: Numbers, quality: Numbers) -> LevelMap:
    """A cumulative logit model of the nearest level: one slope (never negative), four thresholds in rising order."""
    centre, scale = margins.mean(), max(margins.std(), 1e-9)
    level = np.clip(np.rint(quality), 1, 5).astype(int) - 1

    def probabilities(free: Numbers, m: Numbers) -> Numbers:
        thresholds = free[1] + np.concatenate([[0.0], np.cumsum(np.exp(free[2:]))])
        below = expit(thresholds - np.exp(free[0]) * ((m - centre) / scale)[:, None])
        return np.clip(np.diff(below, axis=1, prepend=0.0, append=1.0), 1e-6, None)

    def loss(free: Numbers) -> float:
        # The weak pull to the start keeps a threshold in place where the labels never reach its level.
        likely = probabilities(free, margins)[np.arange(len(level)), level]
        return float(-np.log(likely).sum() + 0.05 * np.sum((free - start) ** 2))

    start = np.array([-1.0, -3.0, 0.5, 0.5, 0.5])
    best = minimize(loss, start, method="L-BFGS-B").x
    return lambda m: (shares := probabilities(best, m)) / shares.sum(axis=1, keepdims=True)


MAPPINGS: dict[str, MakeMap] = {
    "as said": lambda margins, quality: as_said,
    "gaussian": gaussian,
    "ordinal": ordinal,
}


def normalised(logs: Numbers) -> Numbers:
    """Probabilities (n, 5) from their logarithms of any offset."""
    return np.exp(log_softmax(logs, axis=1))
