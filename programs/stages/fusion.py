"""Tool scores and a model's probabilities over the five quality levels, fused into one score (paper, Sec. 3.3)."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agenticiqa.programs.stages.stated_level import level_named
from agenticiqa.signatures.vocabulary import LEVELS, Level

logger = logging.getLogger(__name__)

Probabilities = dict[int, float]
Source = Literal["quality_probs", "reasoning", "uniform"]

SMOOTHED = 0.7
LETTERS: dict[Level, str] = {"Excellent": "A", "Good": "B", "Fair": "C", "Poor": "D", "Bad": "E"}


class ScoreFusion:
    """Fuses tool scores with a model's probabilities over the quality levels.

    ``alpha_c`` is proportional to ``exp(-eta (mean - c)^2)`` around the mean of the tool scores, ``p_c`` is the
    softmax of the model's log-probabilities, and the score is ``sum(alpha_c p_c c) / sum(alpha_c p_c)``. The paper
    prints it without the denominator, with which no result could reach the scale: its own example (two tools at
    2.9871, result 2.9542) holds with it.

    ``model_error`` limits the influence of a confidently wrong model. It is the standard deviation, in levels, of the
    model's error: ``p_c`` is replaced by the probability that an image of level c is rated as the model rates this one,
    ``sum_j p_j K(j | c)`` with K Gaussian over the levels and normalized for each c. 0 is the paper's formula; the
    larger it is, the more the tools decide. A confident model then has no more influence than that error allows, an
    undecided one has none, and the score still rises with the model's expectation.

    Raises ValueError for an ``eta`` or ``model_error`` that is negative or not finite.
    """

    def __init__(
        self, eta: float = 1.0, quality_levels: Sequence[int] = (1, 2, 3, 4, 5), *, model_error: float = 0.0
    ) -> None:
        if not (math.isfinite(eta) and eta >= 0):
            raise ValueError(f"eta is a finite number of at least 0, got {eta}")
        if not (math.isfinite(model_error) and model_error >= 0):
            raise ValueError(f"model_error is a finite number of at least 0, in levels, got {model_error}")
        self.eta, self.model_error = eta, model_error
        self.quality_levels = tuple(quality_levels)

    def compute_perceptual_weights(self, tool_scores: Sequence[float]) -> Probabilities:
        """The weight of each level given tool scores in [1, 5]; weights sum to one, uniform without any score.

        Raises ValueError for a score that is NaN, infinite or off the scale.
        """
        return softmax(self._closeness(tool_scores))

    def extract_vlm_probabilities(self, vlm_output: Mapping[str, Any] | str) -> Probabilities:
        """A model's probabilities over the levels, from its JSON answer or its text; they sum to one.

        In this order: the log-probabilities under ``quality_probs``, softmaxed; the level that its reasoning names
        (0.7 for it, the rest shared); uniform. The last two log a warning. Raises ValueError for other levels.
        """
        return self.probabilities_and_source(vlm_output)[0]

    def probabilities_and_source(self, vlm_output: Mapping[str, Any] | str) -> tuple[Probabilities, Source]:
        """As :meth:`extract_vlm_probabilities`, with the source: quality_probs, reasoning or uniform."""
        if isinstance(vlm_output, Mapping) and vlm_output.get("quality_probs"):
            logs = {int(level): float(log) for level, log in vlm_output["quality_probs"].items()}
            if set(logs) != set(self.quality_levels):
                raise ValueError(f"quality_probs has the levels {sorted(logs)}, expected {list(self.quality_levels)}")
            return softmax(logs), "quality_probs"
        text = vlm_output if isinstance(vlm_output, str) else str(vlm_output.get("quality_reasoning", ""))
        level = level_named(text)
        if level is not None:
            logger.warning("no quality_probs: level %d taken from the reasoning, so the fusion is approximate", level)
            return self.smoothed(level), "reasoning"
        logger.warning("no quality_probs and no level in the reasoning: the fusion relies on the tool scores only")
        return dict.fromkeys(self.quality_levels, 1 / len(self.quality_levels)), "uniform"

    def smoothed(self, level: int) -> Probabilities:
        """The probabilities for a level that is stated alone: 0.7 for it, the rest shared by the others."""
        rest = (1 - SMOOTHED) / (len(self.quality_levels) - 1)
        return {c: SMOOTHED if c == level else rest for c in self.quality_levels}

    def fuse_scores(self, tool_scores: Sequence[float], vlm_probabilities: Mapping[int, float]) -> float:
        """The fused score in [1, 5]; it rises with every tool score and with the model's expectation.

        Without any tool score it is the expectation under ``vlm_probabilities``, whatever ``model_error`` is. Raises
        ValueError for tool scores outside [1, 5], or probabilities that are not a distribution over the levels.
        """
        if set(vlm_probabilities) != set(self.quality_levels):
            raise ValueError(f"probabilities of the levels {sorted(vlm_probabilities)}, expected {self.quality_levels}")
        values = vlm_probabilities.values()
        if not all(math.isfinite(p) and p >= 0 for p in values) or not math.isclose(math.fsum(values), 1, abs_tol=1e-6):
            raise ValueError(f"probabilities are at least 0 and sum to 1, got {dict(vlm_probabilities)}")
        closeness = self._closeness(tool_scores)
        shares = self.likelihood(vlm_probabilities) if tool_scores else vlm_probabilities
        # In logarithms, so that a large eta does not take every level to zero.
        joint = softmax({c: closeness[c] + math.log(share) for c, share in shares.items() if share > 0})
        score = math.fsum(share * c for c, share in joint.items())
        return min(max(score, float(self.quality_levels[0])), float(self.quality_levels[-1]))

    fuse = fuse_scores

    def likelihood(self, vlm_probabilities: Mapping[int, float]) -> Probabilities:
        """The likelihood of the model's probabilities for an image of each level, up to a factor."""
        if self.model_error == 0:
            return dict(vlm_probabilities)
        likely = {}
        for level in self.quality_levels:
            errors = {rated: (rated - level) / self.model_error for rated in self.quality_levels}
            kernel = {rated: math.exp(-0.5 * error * error) for rated, error in errors.items()}
            joint = math.fsum(kernel[rated] * p for rated, p in vlm_probabilities.items())
            likely[level] = joint / sum(kernel.values())
        return likely

    def map_to_level(self, score: float) -> str:
        """The letter of the level nearest to a score in [1, 5]: A (Excellent) to E (Bad)."""
        return LETTERS[level_name(score)]

    def _closeness(self, tool_scores: Sequence[float]) -> dict[int, float]:
        """The logarithm of each level's weight, up to a constant: -eta times the squared distance from the mean."""
        low, high = self.quality_levels[0], self.quality_levels[-1]
        for score in tool_scores:
            if not (math.isfinite(score) and low <= score <= high):
                raise ValueError(f"a tool score lies in [{low}, {high}], got {score}")
        if not tool_scores:
            return dict.fromkeys(self.quality_levels, 0.0)
        mean = math.fsum(tool_scores) / len(tool_scores)
        return {level: -self.eta * (mean - level) ** 2 for level in self.quality_levels}


def softmax(logs: Mapping[int, float]) -> Probabilities:
    """Probabilities that sum to one from log-probabilities of any offset. Raises ValueError for NaN or infinity."""
    if not all(math.isfinite(log) for log in logs.values()):
        raise ValueError(f"log-probabilities are finite, got {dict(logs)}")
    peak = max(logs.values())
    shares = {level: math.exp(log - peak) for level, log in logs.items()}
    total = math.fsum(shares.values())
    return {level: share / total for level, share in shares.items()}


def level_name(score: float) -> Level:
    """The name of the level nearest to a score in [1, 5], the better one half-way."""
    if not 1 <= score <= 5:
        raise ValueError(f"a score lies in [1, 5], got {score}")
    nearest = math.floor(score + 0.5)
    return next(name for name, number in LEVELS.items() if number == nearest)
