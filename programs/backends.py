"""From a stage's configuration to the language models that it asks."""

import os
import re
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.image_tokens import image_tokens
from agenticiqa.programs.models.engine import AsyncEngine, Model
from agenticiqa.programs.models.http import Server, password, place
from agenticiqa.programs.models.providers import PROVIDERS, Provider

TOP_LOGPROBS = 20
NO_KEY = "none"  # what a server without keys is sent
SKIPPED = 60.0  # seconds that a model which stayed out of reach is not asked, where there is a fallback


@dataclass(frozen=True)
class Backend:
    """The models that a stage asks, the primary first, and how their answers are written."""

    lms: tuple[dspy.LM, ...] = ()
    _out_until: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def ambient(cls) -> "Backend":
        """Whatever model DSPy's settings name at the time of the call."""
        return cls()

    def settings(self) -> list[dict[str, Any]]:
        """DSPy settings for each model in turn. History and trace are off: they would keep every image in memory.

        A model that was found out of reach less than a minute ago is left out, if another one follows.
        """
        shared: dict[str, Any] = {"adapter": dspy.JSONAdapter(), "disable_history": True, "trace": None}
        now = time.monotonic()
        *firsts, last = [{"lm": lm, **shared} for lm in self.lms] or [shared]
        return [*(first for first in firsts if self._out_until.get(first["lm"].model, now) <= now), last]

    def out_of_reach(self, lm: dspy.LM) -> None:
        """Leave this model out for a minute."""
        self._out_until[lm.model] = time.monotonic() + SKIPPED

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backend":
        # Optimizers copy programs; the connection is not part of what they tune.
        return self


def connect(stage: StageConfig, *, cache: bool = True) -> Backend | None:
    """The backend of a stage, or ``None`` for ``offline``. Nothing is sent yet.

    Without ``cache`` every question is asked anew.

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
        key_env = stage.fallback_api_key_env or (stage.api_key_env if same_server else None)
        lms.append(_lm(stage, stage.fallback_backend, stage.fallback_api_base, key_env))
    for lm in lms:
        lm.cache = cache
    return Backend(tuple(lms))


def _lm(stage: StageConfig, name: str, address: str | None, key_env: str | None) -> dspy.LM:
    kind, _, model = name.partition(".")
    if kind == "gguf" and model:
        return _in_process(stage, name, model)
    provider = PROVIDERS.get(kind)
    if provider is None or not model:
        known = ", ".join(f"{known}.<model>" for known in PROVIDERS)
        raise BackendError(f"backend {name!r} is not understood: expected offline, gguf.<file> or one of {known}")
    if provider.key_env is None and address is None:
        raise BackendError(f"backend {name!r} needs the address of its server: set api_base (--api-base)")
    if stage.structured_outputs == "json_object" and not provider.json_object:
        raise BackendError(
            f"backend {name!r} has no mode of plain JSON objects: set structured_outputs json_schema or off"
        )
    # A provider's own key never goes to a server of another address: that server's key has to be named.
    key = _key(name, key_env or (None if address else provider.key_env))
    shown = f"{kind}@{place(address)}//{model}" if address else f"{kind}/{model}"
    engine = Model(
        name=shown,
        wire_model=model,
        wire=Server(provider, model, address, key, stage.timeout),
        image_tokens=partial(image_tokens, name),
        max_retries=stage.max_retries,
        timeout=stage.timeout,
        form=_form(stage, provider),
        formats=provider.formats,
        price=stage.price,
        secrets=tuple(secret for secret in (key, password(address)) if secret not in (NO_KEY, "")),
    )
    options: dict[str, Any] = {
        "top_p": stage.top_p if provider.takes_top_p else None,
        "seed": stage.seed if provider.seed else None,
    }
    if stage.logprobs is True and provider.logprobs:
        options |= {"logprobs": True, "top_logprobs": provider.most_logprobs}
    return _asked_through(engine, stage, options)


def _in_process(stage: StageConfig, name: str, model: str) -> dspy.LM:
    from agenticiqa.programs.models.gguf import InProcess

    file = Path(model).expanduser()
    engine = Model(
        name=f"gguf/{file.name}",
        wire_model=file.name,
        wire=InProcess(file, Path(stage.projector).expanduser() if stage.projector else None, timeout=stage.timeout),
        image_tokens=partial(image_tokens, name),
        max_retries=0,
        timeout=stage.timeout,
        form="json_schema" if stage.structured_outputs == "auto" else stage.structured_outputs,
        price=stage.price,
    )
    options: dict[str, Any] = {"top_p": stage.top_p, "seed": stage.seed}
    if stage.logprobs is True:
        options |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return _asked_through(engine, stage, options)


def _asked_through(engine: Model, stage: StageConfig, options: dict[str, Any]) -> dspy.LM:
    """The engine as DSPy's model, by a name with the server's place in it, so that DSPy's cache tells servers apart."""
    try:
        return dspy.LM(
            engine.name,
            engine=engine,
            async_engine=AsyncEngine(engine),
            temperature=stage.temperature,
            max_tokens=stage.max_tokens,
            num_retries=0,  # the engine's own are told, bounded and counted
            **{option: value for option, value in options.items() if value is not None},
        )
    except dspy.LMError as error:  # a reasoning model with a temperature, for instance
        raise BackendError(f"backend {engine.name!r} does not take this configuration: {error}") from error


def without_place(name: str) -> str:
    """The name of a model of ours without the place of its server, as results show it."""
    return re.sub(r"@.*?//", "/", name)


def _form(stage: StageConfig, provider: Provider) -> str:
    return "json_schema" if stage.structured_outputs == "auto" else stage.structured_outputs


def _key(name: str, variable: str | None) -> str:
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable)
    if not key:
        raise BackendError(f"backend {name!r} needs a key: set the environment variable {variable}, or use offline")
    return key
