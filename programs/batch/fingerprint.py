"""What determines the results of a run beside its images and question, and one short digest of it."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import dspy

from agenticiqa.configs import STAGES, Config, StageConfig
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.saving import prompts_of
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.fusion_profile import read_fusion_profile
from agenticiqa.programs.tools.calibration import load_profile

# How a model is reached may change between two halves of a run; which model is asked, and what, may not.
TRANSPORT = frozenset(
    {
        "api_base",
        "fallback_api_base",
        "api_key_env",
        "fallback_api_key_env",
        "timeout",
        "max_retries",
        "price",
    }
)


def run_settings(program: dspy.Module, config: Config) -> dict[str, Any]:
    """What determines the results of ``program``, made from ``config``, as plain JSON types.

    - ``version``: of this package
    - ``config``: as its profile resolves it, without how a model is reached, the cache, and what offline stages ignore
    - ``calibration``: a digest of the curves and of what they leave unexplained, whatever their file is called
    - ``prompts``: a digest of instructions, field descriptions and worked examples, tuned or not
    - ``asked``: in which form the first model of each predictor is asked to answer, which a probe may have decided

    No address of a server, name of a key or path of a calibration is in it; a fusion profile counts by its content.
    Raises ToolError when the calibration cannot be read, and UserError when the fusion profile cannot.
    """
    config = config.in_profile()
    resolved: dict[str, Any] = config.model_dump(
        mode="json", exclude={"cache", "profile", "calibration", "levels", *STAGES}
    )
    resolved |= {name: _stage(section) for name, section in config.sections.items()}
    profile = resolved["fusion"].pop("profile")
    if profile:
        resolved["fusion"] = {"profile": digest(read_fusion_profile(profile).model_dump(mode="json"))}
    curves = {
        tool: [curve.betas, curve.raw_range, curve.residual] for tool, curve in load_profile(config.calibration).items()
    }
    return {
        "version": version("agenticiqa"),
        "config": resolved,
        "calibration": digest(curves),
        "prompts": digest(prompts_of(program)),
        "asked": asked_of(program),
    }


def _stage(stage: StageConfig) -> dict[str, Any]:
    if stage.is_offline:
        return {"backend": stage.backend}
    return stage.model_dump(mode="json", exclude=set(TRANSPORT))


def asked_of(program: dspy.Module) -> Mapping[str, Mapping[str, Any]]:
    """By predictor, in which form its first model is asked to answer."""
    asking = {name: part for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}
    return {name: _of_model(part.models[0]) for name, part in asking.items()}


def _of_model(lm: dspy.BaseLM) -> dict[str, Any]:
    engine = getattr(lm, "engine", None)
    if isinstance(engine, Model):
        return {"form": engine.form, "top_logprobs": engine.top_logprobs}
    return {"model": lm.model}
