"""The pydantic model of a policy for ``agenticiqa gate``: the conditions that a photo must meet."""

import os
from typing import Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from agenticiqa.configs.schema import ConfigError, Section, read_model

SHIPPED = "gate"


class GatePolicy(Section):
    """The conditions for a photo; a key that is not set is not checked. Sides are in pixels of the upright photo."""

    min_short_side: PositiveInt | None = None
    max_long_side: PositiveInt | None = None
    aspect: tuple[float, float] | None = None
    """The least and the greatest width / height."""
    min_effective_side: PositiveInt | None = None
    """The least longer side at the resolution of the detail, which an enlarged copy exceeds."""
    min_jpeg_quality: Annotated[int, Field(ge=1, le=100)] | None = None
    """The least quality of a JPEG by its header, as a quality of libjpeg with equal damage."""
    min_score: Annotated[float, Field(ge=1, le=5)] | None = None
    distortions: dict[str, str] = Field(default_factory=dict)
    """The severity from which a distortion is refused, by category or everyday word."""
    refuse_kinds: tuple[str, ...] = ()
    """Kinds of ``outside_training``: graphic, page, medical, instrument, gray, blank, thin, too small."""

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.aspect and not 0 < self.aspect[0] <= self.aspect[1]:
            raise ValueError(f"aspect must be [lowest, highest] of width / height, got {[*self.aspect]}")
        if self.min_short_side and self.max_long_side and self.min_short_side > self.max_long_side:
            raise ValueError(
                "min_short_side exceeds max_long_side, so every photo would be refused; change one of them"
            )
        return self

    @property
    def needs_assessment(self) -> bool:
        """Whether photos need an assessment, which takes most of the time."""
        return self.min_score is not None or bool(self.distortions or self.refuse_kinds)

    @property
    def looks_at_files(self) -> bool:
        """Whether a condition on the file is set: its sides, its detail or its JPEG quality."""
        sides = (self.min_short_side, self.max_long_side, self.aspect, self.min_effective_side)
        return any(limit is not None for limit in (*sides, self.min_jpeg_quality))


def load_policy(path: str | os.PathLike[str] | None) -> GatePolicy:
    """Read a policy, by default the shipped one. Raises ConfigError, in one line, for a file that is not a policy."""
    wanted = os.fspath(path or SHIPPED)
    policy = read_model(GatePolicy, "policy", wanted)
    if not (policy.needs_assessment or policy.looks_at_files):
        raise ConfigError(
            f"policy {wanted}: it has no condition, so it would accept every photo; see configs/gate.yaml for the keys"
        )
    return policy
