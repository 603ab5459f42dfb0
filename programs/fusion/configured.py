"""Which fusion a configuration means, and whether its fusion profile is one of this model and these tools."""

import logging
from collections.abc import Mapping
from pathlib import Path

from agenticiqa.configs import Config, FusionConfig
from agenticiqa.programs.backends.choice import Backend, without_place
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import PRIOR, FusionProfile, read_fusion_profile
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.tools.tool import Tool

logger = logging.getLogger(__name__)

OFFLINE_ETA, OFFLINE_MODEL_ERROR = 2.0, 3.0
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
    return ScoreFusion(profile=profile)


def default_fusion(section: FusionConfig | None = None) -> ScoreFusion:
    """The fusion without a profile: with the prior of a model that nobody measured, or as a section's numbers say."""
    if section is None or (section.eta is None and section.model_error is None):
        return ScoreFusion(profile=PRIOR)
    return ScoreFusion(1.0 if section.eta is None else section.eta, model_error=section.model_error or 0.0)


def offline_fusion(section: FusionConfig | None = None) -> ScoreFusion:
    """The fusion without a model, whose level probabilities are of the same making as the tools' scores."""
    if section is None or (section.eta is None and section.model_error is None):
        return ScoreFusion(OFFLINE_ETA, model_error=OFFLINE_MODEL_ERROR)
    return default_fusion(section)


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


def warn_of_other_prompts(config: Config, prompts: str) -> None:
    """Log a warning where the configuration's profile was fitted with other prompts, by their digest."""
    if config.fusion.profile is None or config.summarizer.is_offline:
        return
    fitted = read_fusion_profile(config.fusion.profile).prompts
    if fitted and fitted != prompts:
        logger.warning(
            "fusion profile %s: fitted with other prompts (%s, now %s); it is used, and 'agenticiqa calibrate' fits "
            "it anew",
            Path(config.fusion.profile).name,
            fitted,
            prompts,
        )


def curves_digest(names: tuple[str, ...], tools: Mapping[str, Tool]) -> str:
    """A digest of the curves by which these tools' values become scores; tools that are not there have none."""
    curves = {name: tools[name].calibration for name in names if name in tools}
    return digest({name: [curve.betas, curve.raw_range] if curve else None for name, curve in curves.items()})


def backend_shown(model: str) -> str:
    """The backend of a model as a configuration names it, without the address of its server.

    >>> backend_shown("vllm@127.0.0.1:8000/v1//Qwen/Qwen2.5-VL-7B-Instruct")
    'vllm.Qwen/Qwen2.5-VL-7B-Instruct'
    """
    return without_place(model).replace("/", ".", 1)
