"""What people would think of an image, as far as one can tell: a score and how sure it is."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

LEVELS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Opinion:
    """A score in [1, 5], higher is better, and the standard deviation of people's mean opinion around it."""

    score: float
    spread: float

    def probabilities(self) -> dict[int, float]:
        """Of the levels 1..5, summing to one: each has the Gaussian mass nearest to it, the outer ones the tails."""
        opinion = NormalDist(self.score, self.spread)
        below = [0.0, *(opinion.cdf(level + 0.5) for level in LEVELS[:-1]), 1.0]
        return {level: upper - lower for level, (lower, upper) in zip(LEVELS, pairwise(below), strict=True)}
