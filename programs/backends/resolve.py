"""What the name of a backend in a configuration means: the models of a stage, their provider, their key."""

import os
from pathlib import Path

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.choice import AMBIENT
from agenticiqa.programs.backends.providers import PROVIDERS, Provider
from agenticiqa.programs.errors import BackendError, did_you_mean

OF_A_SERVER = ("api_base", "api_key_env", "fallback_backend", "fallback_api_base", "projector", "price")
NO_KEY = "none"  # what a server without keys is sent


def stage_models(stage: StageConfig) -> list[StageConfig]:
    """The stage once per model that it asks: with its own backend, then with its fallback.

    None for ``offline``, and for ``dspy``, whose model is not the configuration's. Each has the settings of the stage
    and no fallback. Raises BackendError for the fallback ``offline``, and for settings that ``dspy`` does not have.
    """
    if stage.is_offline:
        return []
    if stage.backend == AMBIENT:
        if surplus := [name for name in OF_A_SERVER if getattr(stage, name) is not None]:
            raise BackendError(f"backend dspy asks DSPy's model, with that model's settings: remove {surplus[0]}")
        return []
    if stage.fallback_backend == "offline":
        raise BackendError("fallback_backend offline: a stage cannot change its form in mid-run; name a model")
    first = stage.model_copy(update=dict.fromkeys(("fallback_backend", "fallback_api_base", "fallback_api_key_env")))
    if not stage.fallback_backend:
        return [first]
    # The key of the first server is sent to no other server.
    same_server = stage.api_base is not None and stage.fallback_api_base == stage.api_base
    key_env = stage.fallback_api_key_env or (stage.api_key_env if same_server else None)
    second = {"backend": stage.fallback_backend, "api_base": stage.fallback_api_base, "api_key_env": key_env}
    return [first, first.model_copy(update=second)]


def provider_of(stage: StageConfig) -> Provider | None:
    """The provider of a stage's own backend; ``None`` for a model in this process (gguf).

    Raises BackendError for an unknown provider, a missing address, or a form of answer that the provider lacks.
    """
    name = stage.backend
    kind, _, model = name.partition(".")
    if kind == "gguf" and model:
        return None
    provider = PROVIDERS.get(kind)
    if not model and (provider is not None or kind == "gguf"):
        raise BackendError(
            f"backend {name!r} names no model: expected {kind}.{'<file>' if kind == 'gguf' else '<model>'}"
        )
    if provider is None:
        expected = ", ".join(f"{known}.<model>" for known in PROVIDERS)
        hint = did_you_mean(kind, ["offline", AMBIENT, "gguf", *PROVIDERS])
        raise BackendError(
            f"backend {name!r} is unknown{hint}: expected offline, dspy, gguf.<file> or one of {expected}"
        )
    if provider.key_env is None and stage.api_base is None:
        raise BackendError(f"backend {name!r} needs the address of its server: set api_base (--api-base)")
    if stage.structured_outputs == "json_object" and not provider.json_object:
        raise BackendError(f"backend {name!r} has no JSON object mode: set structured_outputs to json_schema or off")
    return provider


def refuse_without_continuation(stage: StageConfig) -> None:
    """Raises BackendError for a backend that begins a new answer where one was begun for it."""
    for model in stage_models(stage) or [stage]:
        provider = PROVIDERS.get(model.backend.partition(".")[0])
        if provider is None or provider.continues is None:
            able = ", ".join(f"{name}.<model>" for name, each in PROVIDERS.items() if each.continues is not None)
            raise BackendError(
                f"backend {model.backend!r} does not continue an answer, which levels are read from: expected {able}"
            )


def key_variable(stage: StageConfig) -> str | None:
    """The environment variable that holds the key of a stage's own backend; ``None`` where no key is sent.

    The key of a provider is never sent to another address: with ``api_base``, ``api_key_env`` has to name the key.
    """
    provider = provider_of(stage)
    if provider is None:
        return None
    return stage.api_key_env or (None if stage.api_base else provider.key_env)


def key_from(variable: str | None, name: str) -> str:
    """The key in an environment variable, for the backend ``name``, without blanks and line breaks around it.

    Raises BackendError when it is not set, and for a key that no header can hold.
    """
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BackendError(f"backend {name!r} needs a key: set the environment variable {variable}, or use offline")
    if not all("!" <= character <= "~" for character in key):
        raise BackendError(
            f"backend {name!r} needs a key without blanks, line breaks and letters beyond ASCII: the one in the "
            f"environment variable {variable} has some"
        )
    return key


def backend_name(config: Config) -> str:
    """The backends of the stages: one name when all are the same, else ``stage=name`` for each."""
    stages = {name: _shown(section.backend) for name, section in config.sections.items()}
    if config.profile == "levels" and "levels" in stages:
        return f"{stages['levels']} (levels)"
    names = set(stages.values())
    return names.pop() if len(names) == 1 else ", ".join(f"{stage}={name}" for stage, name in stages.items())


def _shown(backend: str) -> str:
    """A backend's name in results: of a model file only its name, not its folder."""
    kind, _, model = backend.partition(".")
    return f"gguf.{Path(model).name}" if kind == "gguf" else backend
