"""A fusion profile with typical errors, which tests change, and a rule of a user."""

from collections.abc import Mapping, Sequence
from typing import Any

from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import FusionProfile

TYPICAL = FusionProfile(
    tool_error=0.6,
    model_error=0.7,
    score_error=0.65,
    model_axis="level",
    model_location=3.0,
    model_center=3.0,
    quality_mean=3.2,
    quality_std=0.8,
    reliability={"tool": 0.8, "model": 0.75},
)


class Halfway(ScoreFusion):
    """A rule of a user with a parameter of its own: the weight of the tools in the mean of tools and model."""

    def __init__(self, weight: float = 0.5, **others: Any) -> None:
        super().__init__(**others)
        self.weight = weight

    def fuse_scores(
        self, tool_scores: Sequence[float], vlm_probabilities: Mapping[int, float], *, tool_error: float | None = None
    ) -> float:
        """Return the weighted mean; without a tool score, the model's expected level."""
        expectation = sum(level * share for level, share in vlm_probabilities.items())
        if not tool_scores:
            return expectation
        return self.weight * sum(tool_scores) / len(tool_scores) + (1 - self.weight) * expectation
