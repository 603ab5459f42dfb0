"""From a stage's configuration to the language models that it asks."""

import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.adapter import SteadyAdapter
from agenticiqa.programs.backends.capabilities import known, name_of
from agenticiqa.programs.backends.engine import AsyncEngine, Model
from agenticiqa.programs.backends.image_tokens import image_tokens
from agenticiqa.programs.backends.providers import PROVIDERS, Provider
from agenticiqa.programs.backends.wire import Server, checked, secrets_in
from agenticiqa.programs.errors import BackendError

MOST_LOGPROBS = 20  # of a model in process
NO_KEY = "none"  # what a server without keys is sent
GGUF_CONTEXT = 16384  # tokens; the longest prompt has some 5,000 and a photo up to as many again
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
        shared: dict[str, Any] = {"adapter": SteadyAdapter(), "disable_history": True, "trace": None}
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
    lms = [_lm(each) for each in apart(stage)]
    for lm in lms:
        lm.cache = cache
    return Backend(tuple(lms))


def apart(stage: StageConfig) -> list[StageConfig]:
    """A stage as one of the same settings for each model that it asks, the primary first; none for ``offline``.

    Raises BackendError for a fallback that is no model.
    """
    if stage.is_offline:
        return []
    if stage.fallback_backend == "offline":
        raise BackendError("fallback_backend offline: a stage cannot change its form in mid-run; name a model")
    first = stage.model_copy(update=dict.fromkeys(("fallback_backend", "fallback_api_base", "fallback_api_key_env")))
    if not stage.fallback_backend:
        return [first]
    # The key of the first server goes to no other one.
    same_server = stage.api_base is not None and stage.fallback_api_base == stage.api_base
    key_env = stage.fallback_api_key_env or (stage.api_key_env if same_server else None)
    second = {"backend": stage.fallback_backend, "api_base": stage.fallback_api_base, "api_key_env": key_env}
    return [first, first.model_copy(update=second)]


def provider_of(stage: StageConfig) -> Provider | None:
    """The provider of a stage's first backend; ``None`` for a model in this process.

    Raises BackendError when its name is not understood, or it cannot be reached or asked as the stage says.
    """
    name = stage.backend
    kind, _, model = name.partition(".")
    if kind == "gguf" and model:
        return None
    provider = PROVIDERS.get(kind)
    if provider is None or not model:
        known_kinds = ", ".join(f"{kind}.<model>" for kind in PROVIDERS)
        raise BackendError(f"backend {name!r} is not understood: expected offline, gguf.<file> or one of {known_kinds}")
    if provider.key_env is None and stage.api_base is None:
        raise BackendError(f"backend {name!r} needs the address of its server: set api_base (--api-base)")
    if stage.structured_outputs == "json_object" and not provider.json_object:
        raise BackendError(
            f"backend {name!r} has no mode of plain JSON objects: set structured_outputs json_schema or off"
        )
    return provider


def key_variable(stage: StageConfig) -> str | None:
    """The environment variable with the key of a stage's first backend; ``None`` where it is sent none.

    A provider's own key never goes to a server of another address: that server's key has to be named.
    """
    provider = provider_of(stage)
    if provider is None:
        return None
    return stage.api_key_env or (None if stage.api_base else provider.key_env)


def _lm(stage: StageConfig) -> dspy.LM:
    provider, model = provider_of(stage), stage.backend.partition(".")[2]
    if provider is None:
        return _in_process(stage, model)
    key = _key(stage.backend, key_variable(stage))
    engine = Model(
        name=name_of(stage),
        wire_model=model,
        wire=Server(provider, model, stage.api_base and checked(stage.api_base), key, stage.timeout),
        image_tokens=partial(image_tokens, stage.backend),
        max_retries=stage.max_retries,
        timeout=stage.timeout,
        form=_form(stage),
        top_logprobs=_top_logprobs(stage, provider.most_logprobs if provider.logprobs else 0),
        formats=provider.formats,
        price=stage.price,
        secrets=(*(() if key == NO_KEY else (key,)), *secrets_in(stage.api_base)),
    )
    options: dict[str, Any] = {
        "top_p": stage.top_p if provider.takes_top_p else None,
        "seed": stage.seed if provider.seed else None,
    }
    return _asked_through(engine, stage, options)


def _in_process(stage: StageConfig, model: str) -> dspy.LM:
    from agenticiqa.programs.backends.gguf import GgufEngine

    file, projector = Path(model).expanduser(), Path(stage.projector).expanduser() if stage.projector else None
    wire = GgufEngine(file, projector, context=GGUF_CONTEXT, timeout=stage.timeout)  # which sees that they are there
    engine = Model(
        name=f"gguf@{_version(file, projector)}//{file.name}",
        wire_model=file.name,
        wire=wire,
        image_tokens=partial(image_tokens, stage.backend),
        max_retries=0,
        timeout=stage.timeout,
        form=_form(stage),
        top_logprobs=_top_logprobs(stage, MOST_LOGPROBS),
        price=stage.price,
    )
    options: dict[str, Any] = {"top_p": stage.top_p, "seed": stage.seed}
    return _asked_through(engine, stage, options)


def _version(*files: Path | None) -> str:
    """Tells these files from others of the same names, and from what they were before they were changed."""
    found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:8]


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


def _form(stage: StageConfig) -> str:
    if stage.structured_outputs != "auto":
        return stage.structured_outputs
    seen = known(stage)
    if seen is None or seen.schema != "refused":
        return "json_schema"
    return "json_object" if seen.json_object else "off"


def _top_logprobs(stage: StageConfig, most: int) -> int:
    seen = known(stage) if stage.logprobs else None
    if seen and seen.logprobs:
        return min(seen.logprobs, most)
    return most if stage.logprobs is True else 0


def _key(name: str, variable: str | None) -> str:
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable)
    if not key:
        raise BackendError(f"backend {name!r} needs a key: set the environment variable {variable}, or use offline")
    return key
