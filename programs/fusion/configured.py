"""Which fusion a configuration means, and whether its fusion profile is one of this model and these tools."""

import logging
from collections.abc import Mapping
from pathlib import Path

from agenticiqa.configs import Config
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion, offline_fusion
from agenticiqa.programs.fusion.interval import backend_shown
from agenticiqa.programs.fusion.profile import FusionProfile, read_fusion_profile
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.tools.tool import Tool

logger = logging.getLogger(__name__)

AGAIN = "fit one with 'agenticiqa calibrate', or take fusion out of the configuration"


def fusion_of(config: Config, tools: Mapping[str, Tool], backend: Backend | None) -> ScoreFusion:
    """The fusion of a configuration, whose summarizer asks ``backend`` (``None``: it is offline).

    A profile of another model or of other tools is refused, as its figures describe those: UserError, in one line, as
    for a file that is no profile. Offline a profile is not used, and the log says so: no model is asked that it could
    be of. A model that is DSPy's own is not compared, since it is not known before the call. Other prompts change a
    model's error little, and are only warned of, where a run begins (``warn_of_other_prompts``).
    """
    if config.fusion.profile is None:
        return default_fusion(config.fusion) if backend else offline_fusion(config.fusion)
    profile = read_fusion_profile(config.fusion.profile)
    if backend is None:
        logger.info("fusion profile %s: not used, as no model gives a score", config.fusion.profile)
        return offline_fusion()
    refuse_foreign(profile, config.fusion.profile, backend, tools)
    return default_fusion(config.fusion).with_profile(profile)


def refuse_foreign(profile: FusionProfile, name: str, backend: Backend, tools: Mapping[str, Tool]) -> None:
    """Raises UserError when a profile was fitted for another model, for tools that are not there, or other curves."""
    shown = f"fusion profile {Path(name).name}"
    asked = [backend_shown(lm.model) for lm in backend.lms]
    if profile.backend and asked and profile.backend != asked[0]:
        raise UserError(f"{shown}: it was fitted for {profile.backend}, and the score is asked of {asked[0]}; {AGAIN}")
    if missing := [tool for tool in profile.toolset if tool not in tools]:
        raise UserError(f"{shown}: it was fitted for {', '.join(missing)}, which is no tool here; {AGAIN}")
    if profile.curves and profile.curves != curves_digest(profile.toolset, tools):
        raise UserError(
            f"{shown}: it was fitted with another calibration of {', '.join(profile.toolset)}; use that one, or {AGAIN}"
        )


def refuse_other_prompts(config: Config, scoring: str) -> None:
    """Raises UserError when the profile was fitted with a tuned prompt of the scorer, not that of digest ``scoring``.

    A tuned prompt moves a model's levels far more than another release does, of which only is warned.
    """
    name, profile = _profile_in_use(config)
    if profile and profile.tuned and profile.tuned != scoring:
        raise UserError(
            f"fusion profile {name}: it was fitted with tuned prompts, and these are others; "
            "name the folder that optimize wrote with --prompts or prompts, or take fusion out"
        )


def warn_of_other_prompts(config: Config, prompts: str) -> None:
    """Log a warning where the configuration's profile was fitted with other prompts, by their digest."""
    name, profile = _profile_in_use(config)
    if profile and profile.prompts and profile.prompts != prompts and not profile.tuned:
        logger.warning(
            "fusion profile %s: fitted with other prompts (%s, now %s); it is used, and 'agenticiqa calibrate' fits "
            "it anew",
            *(name, profile.prompts, prompts),
        )


def _profile_in_use(config: Config) -> tuple[str, FusionProfile | None]:
    """The name of the profile's file, and the profile; none where the summarizer asks no model."""
    if config.fusion.profile is None or config.summarizer.is_offline:
        return "", None
    return Path(config.fusion.profile).name, read_fusion_profile(config.fusion.profile)


def curves_digest(names: tuple[str, ...], tools: Mapping[str, Tool]) -> str:
    """A digest of the curves and adapters by which these tools' values become scores; absent tools have none."""
    curves = {name: tools[name].calibration for name in names if name in tools}
    adapted = {name: own.about["digest"] for name in curves if (own := tools[name].adapter)}
    return digest({n: [curve.betas, curve.raw_range] if curve else None for n, curve in curves.items()} | adapted)
