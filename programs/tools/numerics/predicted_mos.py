"""A predicted MOS with its uncertainty."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenticiqa.signatures.vocabulary import ImageKind

QUALITY_LEVELS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class PredictedMOS:
    """A score in [1, 5], higher is better, and the standard deviation of the true MOS around it.

    ``image_kind`` says which MOS the score predicts: those of photos or those of AI-generated images.
    """

    score: float
    spread: float
    image_kind: "ImageKind" = "photo"

    def probabilities(self) -> dict[int, float]:
        """Return the probabilities of the levels 1..5: the Gaussian's mass nearest to each, tails at 1 and 5."""
        predicted = NormalDist(self.score, self.spread)
        below = [0.0, *(predicted.cdf(level + 0.5) for level in QUALITY_LEVELS[:-1]), 1.0]
        return {level: upper - lower for level, (lower, upper) in zip(QUALITY_LEVELS, pairwise(below), strict=True)}
