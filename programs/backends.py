"""From a stage's configuration to the language models that it asks."""

import os
from dataclasses import dataclass
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.programs.errors import BackendError

TOP_LOGPROBS = 20


@dataclass(frozen=True)
class Provider:
    """How DSPy spells a provider, where its key is found, and whether it takes ``top_p`` beside a temperature."""

    prefix: str
    key_env: str | None
    takes_top_p: bool = True


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai", "OPENAI_API_KEY"),
    "anthropic": Provider("anthropic", "ANTHROPIC_API_KEY", takes_top_p=False),
    "google": Provider("gemini", "GEMINI_API_KEY"),
    "vllm": Provider("hosted_vllm", None),
    "ollama": Provider("ollama_chat", None),
}


# DSPy asks a model's name what it supports and sends no response format to a model that it does not know. These three
# let the configuration say it instead.


class SchemaLM(dspy.LM):
    """A model that takes a strict JSON schema."""

    @property
    def supports_response_schema(self) -> bool:
        """Yes, whatever its name."""
        return True

    @property
    def supported_params(self) -> set[str]:
        """What it takes, a response format among it."""
        return {*super().supported_params, "response_format"}


class JsonLM(SchemaLM):
    """A model that takes "answer with a JSON object", but no schema."""

    @property
    def supports_response_schema(self) -> bool:
        """No, whatever its name."""
        return False


class PlainLM(JsonLM):
    """A model that takes no response format at all."""

    @property
    def supported_params(self) -> set[str]:
        """What it takes, without a response format."""
        return super().supported_params - {"response_format"}


FORMS: dict[str, type[dspy.LM]] = {
    "auto": dspy.LM,
    "json_schema": SchemaLM,
    "json_object": JsonLM,
    "off": PlainLM,
}


@dataclass(frozen=True)
class Backend:
    """The models that a stage asks, the primary first, and how their answers are written."""

    lms: tuple[dspy.LM, ...] = ()

    @classmethod
    def ambient(cls) -> "Backend":
        """Whatever model DSPy's settings name at the time of the call."""
        return cls()

    def settings(self) -> list[dict[str, Any]]:
        """DSPy settings for each model in turn. History and trace are off: they would keep every image in memory."""
        shared: dict[str, Any] = {"adapter": dspy.JSONAdapter(), "disable_history": True, "trace": None}
        return [{"lm": lm, **shared} for lm in self.lms] or [shared]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backend":
        # Optimizers copy programs; the connection is not part of what they tune.
        return self


def connect(stage: StageConfig) -> Backend | None:
    """The backend of a stage, or ``None`` for ``offline``. Nothing is sent yet.

    Raises BackendError when the name is not understood or the provider's key is not in the environment.
    """
    if stage.is_offline:
        return None
    # DSPy would fetch a list of models and prices from GitHub at the first call; it ships one, too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    lms = [_lm(stage, stage.backend, stage.api_base, stage.api_key_env)]
    if stage.fallback_backend == "offline":
        raise BackendError("fallback_backend offline: a stage cannot change its form in mid-run; name a model")
    if stage.fallback_backend:
        # The key of the first server goes to no other one.
        same_server = stage.api_base is not None and stage.fallback_api_base == stage.api_base
        key_env = stage.api_key_env if same_server else None
        lms.append(_lm(stage, stage.fallback_backend, stage.fallback_api_base, key_env))
    return Backend(tuple(lms))


def _lm(stage: StageConfig, name: str, api_base: str | None, key_env: str | None) -> dspy.LM:
    provider_name, _, model = name.partition(".")
    provider = PROVIDERS.get(provider_name)
    if provider is None or not model:
        known = ", ".join(f"{known}.<model>" for known in PROVIDERS)
        raise BackendError(f"backend {name!r} is not understood: expected offline or one of {known}")
    if provider.key_env is None and api_base is None:
        raise BackendError(f"backend {name!r} needs the address of its server: set api_base (--api-base)")
    options: dict[str, Any] = {"timeout": stage.timeout, "api_base": api_base}
    if provider.takes_top_p:
        options["top_p"] = stage.top_p
    if stage.logprobs:
        options |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    # A provider's own key never goes to a server of another address: that server's key has to be named.
    key = _key(name, key_env or (None if api_base else provider.key_env))
    try:
        return FORMS[stage.structured_outputs](
            f"{provider.prefix}/{model}",
            temperature=stage.temperature,
            max_tokens=stage.max_tokens,
            num_retries=stage.max_retries,
            api_key=key,
            **{option: value for option, value in options.items() if value is not None},
        )
    except dspy.LMError as error:  # a reasoning model with a temperature, for instance
        raise BackendError(f"backend {name!r} does not take this configuration: {error}") from error


def _key(name: str, variable: str | None) -> str:
    if variable is None:
        return "none"
    key = os.environ.get(variable)
    if not key:
        raise BackendError(f"backend {name!r} needs a key: set the environment variable {variable}, or use offline")
    return key
