"""From a stage's configuration to the language models that it asks."""

import hashlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.addresses import checked_address, public_address, secrets_in
from agenticiqa.programs.backends.capabilities import name_of
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.discovery import Discovery
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.image_tokens import image_tokens
from agenticiqa.programs.backends.in_flight import in_flight_at
from agenticiqa.programs.backends.probe import MOST_TOKENS_IN_PROCESS, probe
from agenticiqa.programs.backends.resolve import NO_KEY, key_from, key_variable, provider_of, stage_models
from agenticiqa.programs.backends.wire import server
from agenticiqa.programs.errors import BackendError

MOST_LOGPROBS = 20  # alternatives per token, of a model in this process
GGUF_CONTEXT = 16384  # tokens; the longest prompt has some 5,000, and a photo up to as many again


def connect(stage: StageConfig, *, cache: bool = True) -> Backend | None:
    """The backend of a stage, or ``None`` for ``offline``; ``dspy`` is the ambient one. Nothing is sent yet.

    Without ``cache`` no answer of an earlier call is reused.

    Raises BackendError when the name is unknown or the provider's key is not in the environment.
    """
    if stage.is_offline:
        return None
    # DSPy would fetch a list of models and prices from GitHub at the first call; it ships one, too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    lms = [_lm(model) for model in stage_models(stage)]
    for lm in lms:
        lm.cache = cache
    return Backend(tuple(lms), Reconnect(stage, cache) if lms else None)


@dataclass(frozen=True)
class Reconnect:
    """Makes a backend again from its configuration; pickled in place of it.

    Raises BackendError as ``connect`` does, and when it is pickled with a password in an address.
    """

    stage: StageConfig
    cache: bool

    def __call__(self) -> Backend:
        """The backend, with keys from the environment."""
        backend = connect(self.stage, cache=self.cache)
        assert backend is not None, "only a backend with models is made again"
        return backend

    def __getstate__(self) -> dict[str, Any]:
        if any(secrets_in(address) for address in (self.stage.api_base, self.stage.fallback_api_base)):
            raise BackendError(
                "a program whose api_base holds a password cannot be written: use api_key_env in its place"
            )
        return self.__dict__.copy()


def _lm(stage: StageConfig) -> dspy.LM:
    provider, model = provider_of(stage), stage.backend.partition(".")[2]
    if provider is None:
        return _in_process(stage, model)
    key = key_from(key_variable(stage), stage.backend)
    engine = Model(
        name=name_of(stage),
        wire_model=model,
        wire=server(
            provider, model, stage.api_base and checked_address(stage.api_base), key, stage.timeout, stage.max_tokens
        ),
        image_tokens=partial(image_tokens, stage.backend),
        max_retries=stage.max_retries,
        timeout=stage.timeout,
        structured_outputs=stage.structured_outputs,
        logprobs=stage.logprobs,
        most_logprobs=provider.most_logprobs if provider.logprobs else 0,
        formats=provider.formats,
        price=stage.price,
        in_flight=in_flight_at(_server(stage)),
        secrets=(*(() if key == NO_KEY else (key,)), *secrets_in(stage.api_base)),
    )
    tried = partial(probe, engine, seed=provider.seed, json_object=provider.json_object)
    engine.discovery = Discovery(name_of(stage), tried)
    options: dict[str, Any] = {
        "top_p": stage.top_p if provider.takes_top_p else None,
        "seed": stage.seed if provider.seed else None,
    }
    return _lm_through(engine, stage, options)


def _server(stage: StageConfig) -> str:
    """Host and port of a stage's own server, or the provider whose server is asked."""
    if stage.api_base:
        return public_address(stage.api_base).partition("/")[0]
    return stage.backend.partition(".")[0]


def _in_process(stage: StageConfig, model: str) -> dspy.LM:
    from agenticiqa.programs.backends.gguf import GgufEngine

    file, projector = Path(model).expanduser(), Path(stage.projector).expanduser() if stage.projector else None
    wire = GgufEngine(file, projector, context=GGUF_CONTEXT, timeout=stage.timeout)  # which checks both files
    engine = Model(
        name=f"gguf@{_version(file, projector)}//{file.name}",
        wire_model=file.name,
        wire=wire,
        image_tokens=partial(image_tokens, stage.backend),
        max_retries=0,
        timeout=stage.timeout,
        structured_outputs=stage.structured_outputs,
        logprobs=stage.logprobs,
        most_logprobs=MOST_LOGPROBS,
        price=stage.price,
    )
    engine.discovery = Discovery(name_of(stage), partial(probe, engine, max_tokens=MOST_TOKENS_IN_PROCESS))
    options: dict[str, Any] = {"top_p": stage.top_p, "seed": stage.seed}
    return _lm_through(engine, stage, options)


def _version(*files: Path | None) -> str:
    """A short hash of paths, sizes and times: files of the same names, and changed files, get different ones."""
    found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:8]


def _lm_through(engine: Model, stage: StageConfig, options: dict[str, Any]) -> dspy.LM:
    """DSPy's model for the engine. The server's address is in its name, so that DSPy's cache tells servers apart."""
    try:
        return dspy.LM(
            engine.name,
            engine=engine,
            temperature=stage.temperature,
            max_tokens=stage.max_tokens,
            num_retries=0,  # the engine's own retries are logged, bounded and counted
            **{option: value for option, value in options.items() if value is not None},
        )
    except dspy.LMError as error:  # a reasoning model with a temperature, for instance
        raise BackendError(f"backend {engine.name!r} does not take this configuration: {error}") from error
