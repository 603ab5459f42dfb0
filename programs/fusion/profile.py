"""A fusion profile: the errors of the tools and of one model, and the mapping of the model's levels to the scale."""

import math
import os
from datetime import date
from statistics import NormalDist
from typing import Literal, NamedTuple

import yaml
from pydantic import Field

from agenticiqa.configs.schema import ConfigError, ErrorInLevels, Section, read_model
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.signatures.vocabulary import ImageKind

HEADER = """\
# A fusion profile, written by "agenticiqa calibrate fusion": the errors of the tools and of one model, in levels, and
# the mapping of the model's expected level to the scale. It depends on the model and the prompt that give the score,
# and on the tools and their curves. To use it, add "--fusion THIS_FILE" to a command with that model, or write
# "fusion: THIS_FILE" in its configuration.
"""
NEAREST_END = 0.005  # share of the scale; expectations nearer to its ends are clipped to this distance
LARGEST_POSITION = 6.0  # levels; a little more than position(5)
LARGEST_SLOPE = 1e4  # levels per unit of position; a fit has at most a tenth of it
# Levels. This and the share in ``fit`` were chosen with CLIVE and simulated models that obey text in images.
UNRELATED_ERROR = 2.0


class NormalAnswer(NamedTuple):
    """One component of a mixture of normal distributions: its share, and mean and deviation in levels."""

    share: float
    place: float
    error: float


class FusionProfile(Section):
    """The errors of the tools and of one model for a kind of images, and the data that they were fitted to.

    ``tool_error``, ``model_error`` and ``score_error`` are standard deviations in levels: of the MOS around the tool
    score, of the model's mapped expectation around the MOS, and of the MOS around the fused score. ``tool_spread`` is
    the root mean square of the deviations that the tools report for the images, ``None`` if they report none.
    ``unrelated_answers`` is the share of the model's answers that do not assess their image (for example because the
    model obeyed a text in it) and have ``UNRELATED_ERROR`` in addition.
    The model's expectation ``e`` is mapped to ``model_center + model_slope * (position(e) - model_location)`` on the
    scale, which may lie outside 1..5. With the ``model_axis`` "level", ``e`` replaces its logit ``position(e)``.
    ``quality_mean`` and ``quality_std`` are the mean and the deviation of the MOS of the images; they replace the tool
    score if there is none. ``reliability`` has the correlations of ``tool`` and ``model`` with the true MOS, and each
    estimate for the model. ``images`` is the number of images, ``labels`` the number of those with MOS in the fit.
    ``prior_std`` is the standard deviation of the reliability of models, which the fit assumed. ``backend``
    and ``prompt`` (a digest) identify the model and the prompt that give the score, ``toolset`` and ``curves`` (a
    digest) the tools and their curves; one that is empty fits any. ``tuned`` is whether the prompt was tuned.
    ``image_kind`` is the kind of image that the tools recognized, ``None`` if unknown.
    """

    format: Literal[1] = 1
    backend: str = ""
    prompt: str = ""
    tuned: bool = False
    toolset: tuple[str, ...] = ()
    curves: str = ""
    image_kind: ImageKind | None = None
    version: str = ""
    fitted_on: date | None = None
    images: int = Field(default=0, ge=0)
    labels: int = Field(default=0, ge=0)
    tool_error: ErrorInLevels
    model_error: ErrorInLevels
    score_error: ErrorInLevels = 1.0
    tool_spread: ErrorInLevels | None = None
    unrelated_answers: float = Field(default=0.0, ge=0, lt=1)
    model_axis: Literal["logit", "level"] = "logit"
    model_location: float = Field(default=0.0, ge=-LARGEST_POSITION, le=LARGEST_POSITION)
    model_center: float = Field(default=3.0, ge=1, le=5)
    model_slope: float = Field(default=1.0, ge=0, le=LARGEST_SLOPE)
    quality_mean: float = Field(default=3.0, ge=1, le=5)
    quality_std: ErrorInLevels = 1.0
    reliability: dict[str, float] = Field(default_factory=dict)
    prior_std: ErrorInLevels = 0.25

    def mapped(self, expectation: float) -> float:
        """Map a model's expected level, in [1, 5], to the scale; the result may lie outside 1..5."""
        place = position(expectation) if self.model_axis == "logit" else expectation
        return self.model_center + self.model_slope * (place - self.model_location)

    def tool_error_of(self, stated: float | None = None) -> float:
        """Return the tools' error for an image, in levels, from the deviation that they report for it, if any.

        A stated deviation is scaled so that its root mean square over the fitted images is ``tool_error``.
        """
        if stated is None:
            return self.tool_error
        return stated * self.tool_error / self.tool_spread if self.tool_spread else stated

    def answers(self, place: float) -> list[NormalAnswer]:
        """Return the mixture for an answer at ``place`` on the scale, which may or may not assess the image.

        A place far outside of the scale is moved to one ``model_error`` outside, because no image is better than 5.
        """
        if not self.unrelated_answers:
            return [NormalAnswer(1.0, place, self.model_error)]
        near = min(max(place, 1 - self.model_error), 5 + self.model_error)
        far_off = math.hypot(self.model_error, UNRELATED_ERROR)
        return [
            NormalAnswer(1 - self.unrelated_answers, near, self.model_error),
            NormalAnswer(self.unrelated_answers, near, far_off),
        ]

    def estimates(self, tools: float, place: float, stated: float | None = None) -> list[NormalAnswer]:
        """Return the mixture for the true MOS, given the tool score and the model's place: one per ``answers``."""
        error, answers = self.tool_error_of(stated), self.answers(place)
        mixture = []
        for share, near, model_error in answers:
            weight = share * NormalDist(tools, math.hypot(error, model_error)).pdf(near) if len(answers) > 1 else 1.0
            both = combined_error(error, model_error)
            mean = (tools / error**2 + near / model_error**2) * both**2
            mixture.append(NormalAnswer(weight, min(max(mean, 1.0), 5.0), both))
        total = math.fsum(component.share for component in mixture)
        return [component._replace(share=component.share / total) for component in mixture]

    def score_error_of(
        self, stated: float | None = None, *, tools: float | None = None, place: float | None = None
    ) -> float:
        """Return the deviation of the true MOS around the fused score, in levels.

        It is larger if the tools report a larger deviation, or if the model's ``place`` is so far from the ``tools``
        that one of them must be wrong.
        """
        typical = combined_error(self.tool_error, self.model_error)
        if tools is None or place is None or not self.unrelated_answers:
            return self.score_error * combined_error(self.tool_error_of(stated), self.model_error) / typical
        parts = self.estimates(tools, place, stated)
        mean = math.fsum(part.share * part.place for part in parts)
        variance = math.fsum(part.share * (part.error**2 + (part.place - mean) ** 2) for part in parts)
        return self.score_error * math.sqrt(variance) / typical


def position(expectation: float) -> float:
    """Return the logit of an expected level's position between 1 and 5; it spreads the values near the ends."""
    share = min(max((expectation - 1) / 4, NEAREST_END), 1 - NEAREST_END)
    return math.log(share / (1 - share))


def combined_error(*errors: float) -> float:
    """Return the standard deviation of the best mean of independent estimates with these deviations."""
    return 1 / math.sqrt(math.fsum(error**-2 for error in errors))


def read_fusion_profile(path: str | os.PathLike[str]) -> FusionProfile:
    """Read a profile. Raises UserError, in one line, for a file that is missing, not YAML or not a profile."""
    try:
        if not os.path.exists(path):
            raise UserError(f"fusion profile {os.fspath(path)}: no such file; name a profile, or paper")
        return read_model(FusionProfile, "fusion profile", os.fspath(path))
    except ConfigError as error:
        raise UserError(str(error)) from error


def write_fusion_profile(path: str | os.PathLike[str], profile: FusionProfile) -> None:
    """Write a profile that :func:`read_fusion_profile` reads, every number to the last digit."""
    write_atomically(path, profile_text(profile))


def profile_text(profile: FusionProfile) -> str:
    """Return the content of a profile's file."""
    text = yaml.safe_dump(profile.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=120)
    return HEADER + text
