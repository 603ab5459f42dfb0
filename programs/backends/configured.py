"""The backends that a configuration names: which they are, and a probe of those of which nothing is known yet."""

from collections.abc import Iterator
from dataclasses import dataclass

import dspy

from agenticiqa.configs import STAGES, Config, StageConfig
from agenticiqa.programs.backends.capabilities import Capabilities, name_of, save_capabilities, saved_capabilities
from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, within
from agenticiqa.programs.backends.probe import probe
from agenticiqa.programs.backends.resolve import stage_models


@dataclass(frozen=True)
class BackendUse:
    """One backend and the stages that ask it.

    ``stage`` is the configuration of the first stage that asks it, without a fallback. ``stages`` names all of them,
    such as ``executor`` or ``executor (fallback)``. ``automatic``: a setting of one of them is "auto", so that it
    depends on what the backend can do.
    """

    stage: StageConfig
    stages: tuple[str, ...]
    automatic: bool

    @property
    def name(self) -> str:
        """Provider, server and model, for people: ``vllm@host:8000/v1/model``."""
        return name_of(self.stage).replace("//", "/")

    @property
    def is_needed(self) -> bool:
        """Whether a stage asks it first; otherwise it is only a fallback."""
        return any(name in STAGES for name in self.stages)


def backends_of(config: Config) -> list[BackendUse]:
    """The distinct backends of a configuration, in the order of its stages. Raises BackendError."""
    found: dict[str, BackendUse] = {}
    for name in STAGES:
        for model, role in zip(stage_models(getattr(config, name)), (name, f"{name} (fallback)"), strict=False):
            automatic = "auto" in (model.structured_outputs, model.logprobs)
            before = found.get(name_of(model), BackendUse(model, (), False))
            found[name_of(model)] = BackendUse(before.stage, (*before.stages, role), before.automatic or automatic)
    return list(found.values())


def probe_unknown(
    config: Config, limits: Limits | None = None
) -> Iterator[tuple[BackendUse, Capabilities | dspy.LMError]]:
    """Probe each backend that the configuration, in its profile, leaves settings of on "auto" and that is not known.

    Yields each probed backend with what was found, which is also saved. Of a backend that is only a fallback a failure
    is yielded; of any other one it is raised, as ``probe`` raises it. Requests count towards ``limits``.
    """
    limits = limits or Limits()
    for use in backends_of(config.in_profile()):
        if not use.automatic or saved_capabilities(use.stage):
            continue
        found: Capabilities | dspy.LMError
        try:
            with within(limits):
                found = probe_and_save(use.stage)
        except (LimitReached, Halted):
            raise
        except dspy.LMError as error:
            if use.is_needed:
                raise
            found = error
        yield use, found


def probe_and_save(stage: StageConfig) -> Capabilities:
    """Probe the first backend of a stage and save what was found. Raises as ``probe`` does."""
    found = probe(stage)
    save_capabilities(stage, found)
    return found
