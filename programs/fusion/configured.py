"""Build the fusion of a configuration, and check that its fusion profile fits the model and the tools."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenticiqa.configs import Config, FusionConfig
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion, offline_fusion
from agenticiqa.programs.fusion.interval import backend_shown
from agenticiqa.programs.fusion.profile import FusionProfile, read_fusion_profile
from agenticiqa.programs.images.files import digest, source_digest
from agenticiqa.programs.tools.tool import OWN, Tool
from agenticiqa.programs.tools.tool_curves import ToolCurve

logger = logging.getLogger(__name__)

AGAIN = "fit one with 'agenticiqa calibrate fusion', or remove fusion from the configuration"


def fusion_of(config: Config, tools: Mapping[str, Tool], backend: Backend | None) -> ScoreFusion:
    """Return the fusion of a configuration. ``backend`` is the summarizer's, ``None`` offline.

    Raises UserError, in one line, for an invalid file and for a profile of another model or of other tools. The offline
    program uses no model, so it ignores a profile with a log message. DSPy's own model is not compared, because it is
    unknown before the call. Prompts are compared after they are loaded (``check_prompt``).
    """
    if config.fusion.profile is None:
        return default_fusion(config.fusion) if backend else offline_fusion(config.fusion)
    profile = read_fusion_profile(config.fusion.profile)
    if backend is None:
        logger.info("fusion profile %s: not used, because no model gives a score", config.fusion.profile)
        return offline_fusion(config.fusion.with_errors(FusionConfig()))
    refuse_foreign(profile, config.fusion.profile, backend, tools)
    return default_fusion(config.fusion).with_profile(profile)


def refuse_foreign(profile: FusionProfile, name: str, backend: Backend, tools: Mapping[str, Tool]) -> None:
    """Raise UserError if a profile was fitted for another model, for missing tools, or for other curves."""
    title = f"fusion profile {Path(name).name}"
    backends = [backend_shown(lm.model) for lm in backend.lms]
    if profile.backend and backends and profile.backend != backends[0]:
        raise UserError(f"{title}: fitted for {profile.backend}, but {backends[0]} gives the score; {AGAIN}")
    if missing := [tool for tool in profile.toolset if tool not in tools]:
        raise UserError(f"{title}: fitted with unavailable tools ({', '.join(missing)}); {AGAIN}")
    if profile.curves and profile.curves != curves_digest(profile.toolset, tools):
        raise UserError(
            f"{title}: fitted with other tool curves of {', '.join(profile.toolset)}; use those, or {AGAIN}"
        )


def check_prompt(file: str | None, fusion: ScoreFusion | None, now: str) -> None:
    """Raise UserError if the profile of a file was fitted with another tuned scoring prompt.

    Another shipped prompt only causes a warning, because the wording of a release changes a model's levels much less.
    ``now`` is the digest of the program's prompt.
    """
    profile = fusion.profile if fusion else None
    if file is None or profile is None or profile.prompt in ("", now):
        return
    title = f"fusion profile {Path(file).name}"
    if profile.tuned:
        raise UserError(
            f"{title}: fitted with another tuned scoring prompt; name the folder of that prompt with --prompts or the "
            "key prompts, or remove fusion from the configuration"
        )
    logger.warning(
        "%s: fitted with another scoring prompt (%s, now %s), but still used; to fit it again, run 'agenticiqa "
        "calibrate fusion'",
        *(title, profile.prompt, now),
    )


def curves_digest(names: tuple[str, ...], tools: Mapping[str, Tool]) -> str:
    """Return a digest of what maps these tools' values to scores: curves, adapters, and a user's functions."""
    return digest({name: _mapping_of(tools[name]) for name in names if name in tools})


def _mapping_of(tool: Tool) -> Any:
    """Return what identifies how a tool's values become scores, as JSON types; ``None`` without a curve."""
    curve = tool.curve
    if tool.source == OWN:
        return [_made_of(tool.measure), _made_of(curve)]
    if tool.adapter:
        return tool.adapter.about["digest"]
    if isinstance(curve, ToolCurve):
        return [curve.betas, curve.raw_range]
    return None if curve is None else _made_of(curve)


def _made_of(function: Any) -> list[str | None]:
    """Return what identifies a user's function or object: its content as text, and a digest of its source."""
    plain = getattr(function, "func", function)  # the function inside a functools.partial
    source = plain if hasattr(plain, "__qualname__") else type(plain)
    return [re.sub(r" at 0x\w+", "", repr(function)), source_digest(source)]
