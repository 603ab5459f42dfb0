"""Before a run: each model that a configuration asks, and what is not known of it yet found out.

For commands: what was found is told on stderr.
"""

import sys
from dataclasses import dataclass

import dspy

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.capabilities import Capabilities, known, name_of, remember
from agenticiqa.programs.backends.connect import apart
from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, within
from agenticiqa.programs.backends.probe import probe
from agenticiqa.programs.cli.options import STAGES, one_line


@dataclass(frozen=True)
class Used:
    """One backend, as the first stage that asks it does. ``stages`` are all those, a fallback marked as one.

    ``automatic``: something about it is left to what is known of it.
    """

    stage: StageConfig
    stages: tuple[str, ...]
    automatic: bool

    @property
    def is_needed(self) -> bool:
        """Whether it is more than a fallback."""
        return any(name in STAGES for name in self.stages)


def backends_of(config: Config) -> list[Used]:
    """The distinct backends of a configuration, in the order of its stages. Raises BackendError."""
    found: dict[str, Used] = {}
    for name in STAGES:
        for each, role in zip(apart(getattr(config, name)), (name, f"{name} (fallback)"), strict=False):
            automatic = "auto" in (each.structured_outputs, each.logprobs)
            before = found.get(name_of(each), Used(each, (), False))
            found[name_of(each)] = Used(before.stage, (*before.stages, role), before.automatic or automatic)
    return list(found.values())


def prepare(config: Config, limits: Limits | None = None) -> None:
    """Probe each backend of the configuration, in its profile, that has something on "auto" and is not known yet.

    What is asked counts towards the limits. Raises what ``probe`` does, except for a backend that is only a fallback.
    """
    with within(limits or Limits()):
        for used in backends_of(config.in_profile()):
            if not used.automatic or known(used.stage):
                continue
            try:
                seen = probed(used.stage)
            except (LimitReached, Halted):
                raise
            except dspy.LMError as error:
                if used.is_needed:
                    raise
                print(f"agenticiqa: the fallback {shown(used.stage)}: {one_line(error)}", file=sys.stderr)
            else:
                print(f"{shown(used.stage)}: {seen}", file=sys.stderr)


def probed(stage: StageConfig) -> Capabilities:
    """What a probe of a stage's first backend found, which is kept."""
    seen = probe(stage)
    remember(stage, seen)
    return seen


def shown(stage: StageConfig) -> str:
    """A stage's first backend, for people: provider, server and model."""
    return name_of(stage).replace("//", "/")
