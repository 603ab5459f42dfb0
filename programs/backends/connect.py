"""Connect a stage's configuration to its language models: their names, servers and keys."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dspy

from agenticiqa.configs import Config, StageConfig
from agenticiqa.configs.spelling import did_you_mean
from agenticiqa.programs.backends.addresses import checked_address, default_address, public_address, secrets_in
from agenticiqa.programs.backends.capabilities import ModelFeatures
from agenticiqa.programs.backends.choice import AMBIENT, Backend, named_at
from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.in_flight import in_flight_at
from agenticiqa.programs.backends.models import always_reasons, plain_name
from agenticiqa.programs.backends.prices import price_of
from agenticiqa.programs.backends.providers import NO_KEY, PROVIDERS, WELL_KNOWN, Provider, row_of
from agenticiqa.programs.backends.sampling import sampling_of
from agenticiqa.programs.errors import BackendError

if TYPE_CHECKING:
    from agenticiqa.programs.backends.wire import Server

OF_A_SERVER = ("api_base", "api_key_env", "fallback_backend", "fallback_api_base", "price")
FEWEST_REASONING_TOKENS = 16_000  # the output tokens that DSPy requires for these models, too


def connect(stage: StageConfig, *, cache: bool = True) -> Backend | None:
    """Return the backend of a stage, or ``None`` for ``offline``; ``dspy`` is the ambient backend. Sends nothing.

    Without ``cache``, no earlier answers are reused.

    Raises BackendError for an unknown name, or when the provider's key is not in the environment.
    """
    if stage.is_offline:
        return None
    # DSPy would fetch a list of models and prices from GitHub at the first call; this selects the list that it ships.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return Reconnect(tuple(stage_models(stage)), cache, stage)()


@dataclass(frozen=True)
class Reconnect:
    """A factory that rebuilds a backend from its models and their section; it is pickled in place of the backend.

    Addresses from the environment are part of the models, so that another process asks the same servers. Raises
    BackendError as ``connect`` does, and when it is pickled with a password or key in an address.
    """

    models: tuple[StageConfig, ...]
    cache: bool
    section: StageConfig

    def __call__(self) -> Backend:
        """Return the backend, with keys from the environment."""
        lms = tuple(_lm(model) for model in self.models)
        for lm in lms:
            lm.cache = self.cache
        return Backend(lms, self if lms else None, self.section)

    def __getstate__(self) -> dict[str, Any]:
        if any(secrets_in(model.api_base) for model in self.models):
            raise BackendError(
                "a program with a password or key in api_base cannot be saved or sent elsewhere: use api_key_env"
            )
        return self.__dict__.copy()


def _lm(stage: StageConfig) -> dspy.LM:
    """Return DSPy's model for a stage's backend. The address in its name makes DSPy's cache separate servers."""
    provider, kind = provider_of(stage), stage.backend.partition(".")[0]
    place = public_address(stage.api_base).partition("/")[0] if stage.api_base else kind
    engine = Model(
        name=name_of(stage),
        wire=server_of(stage),
        stage=stage,
        features=features_of(stage),
        price=price_of(stage),
        in_flight=in_flight_at(place, provider.at_a_time),
    )
    try:
        return dspy.LM(
            engine.name,
            engine=engine,
            num_retries=0,  # the engine's own retries are logged, bounded and counted
            **sampling_of(stage, provider),
        )
    except dspy.LMError as error:
        raise BackendError(f"backend {engine.name!r} does not accept this configuration: {error}") from error


def server_of(stage: StageConfig) -> "Server":
    """Return the server of a stage's own backend. Raises BackendError as ``connect`` does."""
    from agenticiqa.programs.backends.wire import server  # import of httpx, which a program without a model never uses

    provider, model = provider_of(stage), stage.backend.partition(".")[2]
    key = key_from(key_variable(stage), stage.backend)
    address = stage.api_base and checked_address(stage.api_base)
    return server(provider, model, address, key, stage.timeout or provider.timeout, stage.max_tokens)


def features_of(stage: StageConfig) -> ModelFeatures:
    """Return the features that a stage's own backend is asked for. Raises BackendError as ``provider_of`` does."""
    return ModelFeatures(stage.structured_outputs, stage.logprobs, provider_of(stage), name_of(stage))


def name_of(stage: StageConfig) -> str:
    """Return the name of a stage's own backend, without any secret: ``provider/model at host:port/path``."""
    kind, _, model = stage.backend.partition(".")
    return named_at(f"{kind}/{model}", public_address(stage.api_base) if stage.api_base else "")


def address_shown(model: StageConfig) -> str:
    """Return the address of a model, without any login, and where it is from if the configuration has none."""
    provider = provider_of(model)
    shown = public_address(model.api_base or provider.address or "")
    with suppress(BackendError):  # a variable that is no address, and that an address of the configuration replaces
        default, origin = default_address(provider)
        if model.api_base == default:
            return f"{shown} ({origin})"
    return shown


def stage_models(stage: StageConfig) -> list[StageConfig]:
    """Return the stage once for each of its models: first with its own backend, then with its fallback.

    The list is empty for ``offline`` and ``dspy``, which have no model in the configuration. Each element has the
    settings of the stage and no fallback. Raises BackendError for the fallback ``offline``, and for settings that
    ``dspy`` does not have.
    """
    stage = located(stage)
    if stage.is_offline:
        return []
    if stage.backend == AMBIENT:
        if unsupported := [name for name in OF_A_SERVER if getattr(stage, name) is not None]:
            raise BackendError(f"backend dspy uses DSPy's model with its own settings: remove {unsupported[0]}")
        return []
    if stage.fallback_backend == "offline":
        raise BackendError("fallback_backend: a stage with a model cannot fall back to offline; name another model")
    first = stage.model_copy(update=dict.fromkeys(("fallback_backend", "fallback_api_base", "fallback_api_key_env")))
    if not stage.fallback_backend:
        return [_with_own_settings(first)]
    # The key of the first server is not sent to another server.
    same_server = stage.api_base is not None and stage.fallback_api_base == stage.api_base
    key_env = stage.fallback_api_key_env or (stage.api_key_env if same_server else None)
    second = {"backend": stage.fallback_backend, "api_base": stage.fallback_api_base, "api_key_env": key_env}
    fallback = first.model_copy(update=second)
    require_address(fallback, "fallback_api_base")
    unpriced = fallback.model_copy(update={"price": None})
    if fallback.backend != stage.backend and price_of(unpriced):  # the price in the section is that of its own model
        fallback = unpriced
    return [_with_own_settings(first), _with_own_settings(fallback)]


def workers_for(models: Iterable[StageConfig]) -> int:
    """Return the default number of images in parallel: the fewest requests that one of these models takes at a time."""
    rows = filter(None, (row_of(model.backend) for model in models))
    return min((row.at_a_time or WORKERS for row in rows), default=WORKERS)


def located(stage: StageConfig) -> StageConfig:
    """Return a stage with the addresses that it leaves out: from the environment, or a server's default.

    The user names the address in such a variable, so the provider's key is sent there. Raises BackendError for a
    variable that is no address.
    """
    changes: dict[str, str | None] = {}
    for prefix in ("", "fallback_"):
        backend, key_env = getattr(stage, f"{prefix}backend"), getattr(stage, f"{prefix}api_key_env")
        provider = row_of(backend or "")
        given = (getattr(stage, f"{prefix}api_base") or "").rstrip("/")
        if provider is None or given not in ("", provider.address):
            continue
        address = provider.address if given else default_address(provider)[0]
        if provider.key_env is None or address != provider.address:
            changes |= {f"{prefix}api_base": address, f"{prefix}api_key_env": key_env or provider.key_env}
        elif given:
            changes[f"{prefix}api_base"] = None  # the provider itself, which gets its key
    return stage.model_copy(update=changes) if changes else stage


def _with_own_settings(stage: StageConfig) -> StageConfig:
    """Return a section with the settings that its provider needs and that the user did not set.

    These are the time for one attempt, the output tokens of models that reason, and no temperature for OpenAI's
    reasoning models. Raises BackendError for settings that these refuse.
    """
    provider = row_of(stage.backend)
    if provider is None:
        return stage
    if stage.timeout is None:
        stage = stage.model_copy(update={"timeout": provider.timeout})
    if "max_tokens" not in stage.model_fields_set and stage.max_tokens < provider.max_tokens:
        stage = stage.model_copy(update={"max_tokens": provider.max_tokens})
    if not always_reasons(stage.backend):
        return stage
    needed = {"temperature": None, "top_p": None, "max_tokens": max(stage.max_tokens, FEWEST_REASONING_TOKENS)}
    stage = stage.model_copy(update={name: needed[name] for name in needed.keys() - stage.model_fields_set})
    if stage.temperature not in (None, 1) or stage.max_tokens < FEWEST_REASONING_TOKENS:
        raise BackendError(
            f"backend {stage.backend!r} always reasons: remove temperature and max_tokens from its section, or set "
            f"temperature: null and max_tokens: {FEWEST_REASONING_TOKENS} or more"
        )
    return stage


def provider_of(stage: StageConfig) -> Provider:
    """Return the provider of a stage's own backend.

    Raises BackendError for an unknown provider, a missing address, or a form of JSON that the provider lacks.
    """
    name = stage.backend
    kind, _, model = name.partition(".")
    provider = row_of(name)
    if provider is None:
        expected = ", ".join(f"{known}.<model>" for known in PROVIDERS)
        for pattern, known in WELL_KNOWN.items():
            if re.match(pattern, name):
                raise BackendError(f"backend {name!r} names no provider, did you mean {known}.{name}?")
        hint = did_you_mean(kind, ["offline", AMBIENT, *PROVIDERS], f"offline, dspy or one of {expected}")
        raise BackendError(f"backend {name!r} is unknown{hint}")
    if not model:
        raise BackendError(f"backend {name!r} names no model: expected {kind}.<model>")
    require_address(stage, "api_base (--api-base)")
    if stage.structured_outputs == "json_object" and "json_object" not in provider.forms:
        raise BackendError(f"backend {name!r} has no JSON object mode: set structured_outputs to json_schema or off")
    # At the user's own address, such as a gateway, the name of a model does not identify it.
    return provider.at_another_address(stage.api_base) if stage.api_base else provider.of_model(plain_name(model))


def require_address(stage: StageConfig, setting: str) -> None:
    """Raise BackendError if the provider has no address and the user did not set one with ``setting``."""
    provider = row_of(stage.backend)
    if provider and provider.key_env is None and stage.api_base is None:
        raise BackendError(
            f"backend {stage.backend!r} needs the address of its server: set {setting}, such as http://127.0.0.1:8000/v1"
        )


def refuse_without_batches(stage: StageConfig) -> None:
    """Raise BackendError for a backend without a Batch API."""
    provider = row_of(stage.backend)
    if not stage.is_offline and not (provider and provider.has_batches):
        able = " or ".join(f"{name}.<model>" for name, row in PROVIDERS.items() if row.has_batches)
        raise BackendError(f"backend {stage.backend!r} does not support --batch: use {able}, or run without --batch")


def refuse_without_continuation(stage: StageConfig) -> None:
    """Raise BackendError for a backend that cannot continue an unfinished answer."""
    for model in stage_models(stage) or [stage]:
        provider = row_of(model.backend)
        if provider is None or provider.continues is None:
            supported = ", ".join(f"{name}.<model>" for name, row in PROVIDERS.items() if row.continues is not None)
            raise BackendError(
                f"backend {model.backend!r} cannot continue a prefilled answer, as the levels scorer requires: use "
                f"{supported}"
            )


def key_variable(stage: StageConfig) -> str | None:
    """Return the environment variable with the key of a stage's own backend; ``None`` if no key is sent.

    The key of a provider is never sent to another address: with ``api_base``, ``api_key_env`` must name the key.
    """
    provider = provider_of(stage)
    variable = stage.api_key_env or (None if stage.api_base else provider.key_env)
    if variable and not variable.isidentifier():  # a key in its place is not shown
        raise BackendError(
            f"backend {stage.backend!r}: api_key_env names an environment variable; it is not the key itself"
        )
    return variable


def key_from(variable: str | None, name: str) -> str:
    """Return the key in an environment variable, for the backend ``name``, without surrounding blanks and line breaks.

    Raises BackendError when it is not set, and for a key that a header cannot contain.
    """
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BackendError(f"backend {name!r} needs a key: set the environment variable {variable}, or use offline")
    if not all("!" <= character <= "~" for character in key):
        raise BackendError(
            f"backend {name!r}: the key in the environment variable {variable} contains blanks, line breaks or "
            "characters outside ASCII; set it to the key alone"
        )
    return key


def backend_name(config: Config) -> str:
    """Return the backends of the stages: one name if all are the same, else ``stage=name`` for each stage."""
    stages = {name: section.backend for name, section in config.sections.items()}
    if config.mode == "levels" and "levels" in stages:
        return f"{stages['levels']} (levels)"
    names = set(stages.values())
    return names.pop() if len(names) == 1 else ", ".join(f"{stage}={name}" for stage, name in stages.items())
