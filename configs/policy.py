"""The one pydantic model that reads a policy of ``agenticiqa gate``: what a photo must have to be accepted."""

import os
from typing import Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from agenticiqa.configs.schema import ConfigError, Section, read_model

SHIPPED = "gate"
FILE_CHECKS = "min_short_side, max_long_side, aspect, min_effective_side and min_jpeg_quality"


class GatePolicy(Section):
    """What is asked of a photo; what is left out is not looked at. Sides are in pixels, upright."""

    min_short_side: PositiveInt | None = None
    max_long_side: PositiveInt | None = None
    aspect: tuple[float, float] | None = None
    """The least and the greatest width / height."""
    min_effective_side: PositiveInt | None = None
    """Of the longer side: the pixels that its detail needs. An enlarged copy has more pixels than detail."""
    min_jpeg_quality: Annotated[int, Field(ge=1, le=100)] | None = None
    """The least JPEG quality of its past, also where it is a PNG now."""
    min_score: Annotated[float, Field(ge=1, le=5)] | None = None
    distortions: dict[str, str] = Field(default_factory=dict)
    """By category or everyday word: the least severity that is refused."""
    refuse_kinds: tuple[str, ...] = ()
    """Of the kinds in ``outside_training``: graphic, page, medical, instrument, gray, blank, thin, too small."""

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.aspect and not 0 < self.aspect[0] <= self.aspect[1]:
            raise ValueError(f"aspect is {[*self.aspect]}, expected the least width / height and then the greatest")
        if self.min_short_side and self.max_long_side and self.min_short_side > self.max_long_side:
            raise ValueError("min_short_side is above max_long_side, so that every photo would be refused")
        return self

    @property
    def needs_assessment(self) -> bool:
        """Whether the program has to judge the photo, which takes most of the time."""
        return self.min_score is not None or bool(self.distortions or self.refuse_kinds)

    @property
    def looks_at_files(self) -> bool:
        """Whether any of ``FILE_CHECKS`` is set, which a kept result cannot answer."""
        sides = (self.min_short_side, self.max_long_side, self.aspect, self.min_effective_side)
        return any(each is not None for each in (*sides, self.min_jpeg_quality))


def load_policy(path: str | os.PathLike[str] | None) -> GatePolicy:
    """Read a policy; the shipped one for ``None``. Raises ConfigError, in one line, for a file that is none."""
    wanted = os.fspath(path or SHIPPED)
    policy = read_model(GatePolicy, "policy", wanted)
    if not (policy.needs_assessment or policy.looks_at_files):
        raise ConfigError(f"policy {wanted}: names no condition, so it would accept everything; see configs/gate.yaml")
    return policy
