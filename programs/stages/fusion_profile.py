"""A fusion profile: how far the tools and one model are to be trusted, and where that model's levels lie."""

import os
from datetime import date
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically

HEADER = """\
# A fusion profile, written by "agenticiqa calibrate": the errors of the tools and of one model, in levels, and where
# the model's expected level lies on the scale. To use it, write "fusion: THIS_FILE" in a configuration.
"""
LARGEST_ERROR = 100.0  # levels; whoever errs by so much has no influence


class FusionProfile(BaseModel):
    """What the fusion knows of a backend, and of the images that it was fitted to.

    ``tool_error`` and ``model_error`` are standard deviations in levels: of the true opinion around the tool mean, and
    of the model's mapped expectation around the true opinion. The expectation ``e`` of the model's level probabilities
    means ``model_center + model_slope * (e - model_location)`` on the scale, which may lie outside 1..5.
    ``quality_mean`` and ``quality_std`` describe the opinions of the images; they stand in for the tools where none
    gave a score. ``reliability`` has the correlations with the true opinion, of ``tool`` and ``model``, and each
    estimate that the model's was made of. ``images`` is 0 for the prior, ``labels`` the number of images whose opinion
    scores were used. ``prior_weight`` is the number of images that the prior counted for. ``backend``, ``prompts`` (a
    digest), ``toolset`` and ``curves`` (a digest of the toolset's curves) say what it was fitted to; they are empty in
    the prior, which serves any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: Literal[1] = 1
    backend: str = ""
    prompts: str = ""
    toolset: tuple[str, ...] = ()
    curves: str = ""
    version: str = ""
    fitted_on: date | None = None
    images: int = Field(default=0, ge=0)
    labels: int = Field(default=0, ge=0)
    tool_error: float = Field(gt=0, le=LARGEST_ERROR)
    model_error: float = Field(gt=0, le=LARGEST_ERROR)
    model_location: float = Field(default=3.0, ge=1, le=5)
    model_center: float = Field(default=3.0, ge=1, le=5)
    model_slope: float = Field(default=1.0, ge=0)
    quality_mean: float = Field(default=3.0, ge=1, le=5)
    quality_std: float = Field(default=1.0, gt=0)
    reliability: dict[str, float] = Field(default_factory=dict)
    prior_weight: float = Field(default=0.0, ge=0)

    def mapped(self, expectation: float) -> float:
        """Where a model's expected level, in [1, 5], lies on the scale; possibly outside 1..5."""
        return self.model_center + self.model_slope * (expectation - self.model_location)


def read_fusion_profile(path: str | os.PathLike[str]) -> FusionProfile:
    """Read a profile. Raises UserError, in one line, for a file that is missing, not YAML or not a profile."""
    try:
        return FusionProfile.model_validate(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"fusion profile {os.fspath(path)}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"fusion profile {os.fspath(path)}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors())
        raise UserError(f"fusion profile {os.fspath(path)}: {wrong}") from error


def write_fusion_profile(path: str | os.PathLike[str], profile: FusionProfile) -> None:
    """Write a profile that :func:`read_fusion_profile` reads, every number to the last digit."""
    text = yaml.safe_dump(profile.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=120)
    write_atomically(path, HEADER + text)


# What is assumed of a model that nobody has measured.
PRIOR = FusionProfile(
    tool_error=0.6,
    model_error=0.8,
    model_slope=0.8,
    model_location=3.0,
    model_center=3.0,
    quality_mean=3.0,
    quality_std=0.9,
    reliability={"tool": 0.8, "model": 0.75},
    prior_weight=30.0,
)
