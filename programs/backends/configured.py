"""The backends that a configuration names: which they are, and a probe of those of which nothing is known yet."""

from collections.abc import Iterator
from dataclasses import dataclass

import dspy

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.capabilities import Capabilities, name_of
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.discovery import Discovery, known_capabilities
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, within
from agenticiqa.programs.backends.resolve import stage_models


@dataclass(frozen=True)
class BackendUse:
    """One backend and the stages that ask it.

    ``stage`` is the configuration of the first stage that asks it, without a fallback. ``stages`` names all of them,
    such as ``executor`` or ``executor (fallback)``. ``automatic``: a setting of one of them is "auto", so that it
    depends on what the backend can do. ``alone``: a stage asks it and has no fallback.
    """

    stage: StageConfig
    stages: tuple[str, ...]
    automatic: bool
    alone: bool = False

    @property
    def name(self) -> str:
        """Provider, server and model, for people: ``vllm@host:8000/v1/model``."""
        return name_of(self.stage).replace("//", "/")

    @property
    def is_needed(self) -> bool:
        """Whether a stage asks it first; otherwise it is only a fallback."""
        return any(" (" not in name for name in self.stages)

    @property
    def known(self) -> Capabilities | None:
        """What was found out about it in the last 30 days."""
        return known_capabilities(name_of(self.stage))

    def discovery(self) -> Discovery:
        """How to find out about it. Raises BackendError as ``connect`` does."""
        backend = connect(self.stage, cache=False)
        engine = backend.lms[0].engine if backend else None
        if not isinstance(engine, Model) or engine.discovery is None:
            raise ValueError(f"{self.stage.backend} is no backend that can be asked")
        return engine.discovery


def backends_of(config: Config) -> list[BackendUse]:
    """The distinct backends of a configuration, in the order of its stages. Raises BackendError."""
    found: dict[str, BackendUse] = {}
    for name, section in config.sections.items():
        models = stage_models(section)
        for model, role in zip(models, (name, f"{name} (fallback)"), strict=False):
            automatic, alone = "auto" in (model.structured_outputs, model.logprobs), len(models) == 1
            before = found.get(name_of(model), BackendUse(model, (), False))
            roles = (*before.stages, role)
            use = BackendUse(before.stage, roles, before.automatic or automatic, before.alone or alone)
            found[name_of(model)] = use
    return list(found.values())


def probe_unknown(
    config: Config, limits: Limits | None = None
) -> Iterator[tuple[BackendUse, Capabilities | dspy.LMError]]:
    """Probe each backend that the configuration, in its profile, leaves settings of on "auto" and that is not known.

    Yields each probed backend with what was found, which is also kept. Where another backend takes over, a failure is
    yielded: of one that is only a fallback any, of one that always has a fallback an outage. Any other one is raised,
    as ``probe`` raises it. Requests count towards ``limits``.
    """
    limits = limits or Limits()
    for use in backends_of(config.in_profile()):
        if not use.automatic or use.known:
            continue
        found: Capabilities | dspy.LMError
        try:
            with within(limits):
                found = use.discovery().find()
        except (LimitReached, Halted):
            raise
        except dspy.LMError as error:
            if use.is_needed and (use.alone or not dspy.is_retryable_lm_error(error)):
                raise
            found = error
        yield use, found
