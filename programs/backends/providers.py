"""List the providers that a configuration can name: their addresses and the features of their interfaces.

A row has the features that are requested first. A feature that a server refuses is not requested again
(``capabilities``).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agenticiqa.programs.backends.image_tokens import LLAMA_CPP, Rule, claude_tokens, gemini_tokens, openai_tokens
from agenticiqa.programs.backends.json_schema import BOUNDS
from agenticiqa.programs.backends.own_network import is_own_network

Form = Literal["json_schema", "json_object", "off"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]

NO_KEY = "none"  # key for a server without keys; no header with it is sent
TIMEOUT = 120.0  # seconds for one attempt
SLOW = 600.0  # seconds, where a model of the user's own computer may need minutes for an answer
JPEG_PNG = frozenset({"image/jpeg", "image/png"})  # media types that every server decodes
WITH_WEBP = JPEG_PNG | {"image/webp"}


def names_of(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the names of media types of images, in order, such as "jpeg"."""
    return tuple(sorted(mime.removeprefix("image/") for mime in formats))


@dataclass(frozen=True)
class ContextSize:
    """The size of a server's context: the option that sets it, and where the server reports it.

    ``path`` is below the address of the API, or at the root of the server if it begins with a slash. ``field`` is the
    name of the number in the entry of a model there, with dots.
    """

    option: str
    path: str = "models"
    field: str = "max_model_len"

    @property
    def remedy(self) -> str:
        """What to do if a request does not fit."""
        return f"set a larger context at the server ({self.option}), or send a smaller image with --max-side"


@dataclass(frozen=True)
class Provider:
    """One provider of models: address, key, and the features of its interface.

    ``key_env``: the environment variable of its key; ``None`` for a server of the user's own. ``address``: its own
    address, or where such a server listens by default; without one, ``api_base`` is needed. ``address_env``: the
    environment variables in which its clients read another address; ``path``: what they append to it. ``route``: lm15's
    name for its interface. ``token_limit``: the parameter of OpenAI's interface that limits the tokens of an answer.
    ``forms``: the ways to request JSON, the best first. ``logprobs``: the number of alternatives per token, 0 for none.
    ``schema_per_request``: whether each request has a schema of its own, with the names and the number of rows that it
    asks for. Servers of the user's own build a grammar in milliseconds; hosted providers compile and cache each schema,
    which delays its first request, so they get one schema for each stage. ``refused_keywords``: the keywords that their
    strict modes refuse. ``image_tokens``: the rule for the tokens of an image, by default Qwen's; ``models`` has
    the rules of models that several providers offer. ``formats``: the media types that it is known to decode.
    ``continues``: the fields of a request that continues an unfinished answer; ``None`` if the model would begin a new
    answer.
    ``reasoning_is_apart``: whether it counts hidden reasoning separately from output tokens. ``context``: the size of
    its context, for a server of the user's own. ``timeout``: seconds for one attempt, unless the configuration sets
    them. ``max_tokens``: the fewest tokens of an answer, unless the configuration sets them, for models that reason
    before they answer. ``at_a_time``: how many requests it answers at a time (``None``: many), which is the default of
    ``--workers``. ``has_batches``: whether it has OpenAI's Batch API. ``models``: different values for some models, by
    a pattern that matches the beginning of their plain names (``models.plain_name``). ``elsewhere``: different values
    for another server with its interface, and ``nearby`` for one on this machine or in its network, which is hardly a
    gateway to the provider.
    """

    key_env: str | None = None
    address: str | None = None
    address_env: tuple[str, ...] = ()
    path: str = ""
    route: str = "openai-chat"
    token_limit: TokenLimit = "max_tokens"
    forms: tuple[Form, ...] = ("json_schema", "json_object")
    logprobs: int = 20
    seed: bool = True
    takes_top_p: bool = True
    schema_per_request: bool = False
    refused_keywords: frozenset[str] = frozenset()
    image_tokens: Rule | None = None
    formats: frozenset[str] = JPEG_PNG
    continues: Mapping[str, Any] | None = None
    reasoning_is_apart: bool = False
    context: ContextSize | None = None
    timeout: float = TIMEOUT
    max_tokens: int = 0
    at_a_time: int | None = None
    has_batches: bool = False
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    elsewhere: Mapping[str, Any] = field(default_factory=dict)
    nearby: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a provider with a key that does not state ``image_tokens``, on which estimates of its price depend."""
        if self.key_env and self.image_tokens is None:
            raise TypeError(f"the provider with the key {self.key_env} must state image_tokens")

    @property
    def bills_schemas(self) -> bool:
        """Whether it adds the schema to the prompt and bills it; a server of the user's own turns it into a grammar."""
        return self.key_env is not None

    @property
    def format_names(self) -> tuple[str, ...]:
        """The names of the formats that it decodes, in order, such as "jpeg"."""
        return names_of(self.formats)

    def of_model(self, name: str) -> "Provider":
        """Return the row with the values for the model with this plain name at the provider's own address."""
        changes = [change for pattern, change in self.models.items() if re.match(pattern, name)]
        return replace(self, **changes[0]) if changes else self

    def at_another_address(self, address: str) -> "Provider":
        """Return the row of another server with this interface."""
        changes = {**self.elsewhere, **(self.nearby if is_own_network(address) else {})}
        return replace(self, **changes) if changes else self


PROVIDERS: dict[str, Provider] = {
    # Also the row of any OpenAI-compatible server, with api_base: every feature of the interface is requested.
    "openai": Provider(
        "OPENAI_API_KEY",
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        token_limit="max_completion_tokens",
        image_tokens=openai_tokens,
        context=ContextSize("the option of the server for it"),
        formats=WITH_WEBP,
        has_batches=True,
        models={
            r"o\d|gpt-5(?!-chat|\.)": {"logprobs": 0},  # reasoning models answer 403 to log-probabilities
            r"gpt-3\.5|gpt-4(-|$)|gpt-4o-2024-05-13": {"forms": ("json_object",)},  # models without structured outputs
        },
        elsewhere={"formats": JPEG_PNG},
        nearby={"schema_per_request": True},
    ),
    # Newer models refuse top_p together with a temperature; there is no JSON mode, seed or log-probability.
    "anthropic": Provider(
        "ANTHROPIC_API_KEY",
        "https://api.anthropic.com/v1",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
        "/v1",
        route="anthropic",
        forms=("json_schema",),
        logprobs=0,
        seed=False,
        takes_top_p=False,
        refused_keywords=BOUNDS,
        image_tokens=claude_tokens,
        formats=WITH_WEBP,
        models={r"claude-(2|3|instant)|claude-(opus|sonnet)-4-(0|2025)": {"forms": ()}},  # models without them
    ),
    # Few models give log-probabilities; the others refuse (400).
    "google": Provider(
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
        "/v1beta",
        route="gemini",
        image_tokens=gemini_tokens,
        formats=WITH_WEBP,
        reasoning_is_apart=True,
        max_tokens=16_000,
    ),
    "vllm": Provider(
        schema_per_request=True,
        formats=WITH_WEBP,
        continues={"continue_final_message": True, "add_generation_prompt": False},
        context=ContextSize("--max-model-len"),
    ),
    "sglang": Provider(
        schema_per_request=True,
        formats=WITH_WEBP,
        continues={"continue_final_message": True},
        context=ContextSize("--context-length"),
    ),
    # Versions without log-probabilities ignore the request for them. Older versions do not decode WebP. Only a loaded
    # model has a size of the context.
    "ollama": Provider(
        None,
        "http://localhost:11434/v1",
        ("OLLAMA_HOST", "OLLAMA_API_BASE"),
        "/v1",
        schema_per_request=True,
        context=ContextSize("OLLAMA_CONTEXT_LENGTH, or num_ctx of the model", "/api/ps", "context_length"),
        timeout=SLOW,
        at_a_time=1,
    ),
    # It continues an answer without extra fields, but refuses to if the model would reason first.
    "llamacpp": Provider(
        address="http://localhost:8080/v1",
        schema_per_request=True,
        image_tokens=LLAMA_CPP,
        continues={"chat_template_kwargs": {"enable_thinking": False}},
        context=ContextSize("-c, which llama.cpp divides among its -np slots", field="meta.n_ctx"),
        timeout=SLOW,
        at_a_time=1,
    ),
    "lmstudio": Provider(
        address="http://localhost:1234/v1",
        schema_per_request=True,
        forms=("json_schema",),
        logprobs=0,
        image_tokens=LLAMA_CPP,
        formats=WITH_WEBP,
        context=ContextSize("the context length when the model is loaded", "/api/v0/models", "loaded_context_length"),
        timeout=SLOW,
        at_a_time=1,
    ),
}

# The providers of well-known models, by a pattern of the beginning of their names.
WELL_KNOWN = {r"(chat)?gpt-|o\d\b": "openai", "claude-": "anthropic", "gemini-": "google"}


def row_of(backend: str) -> Provider | None:
    """Return the row for a backend's name, ``provider.model``; ``None`` for the name of no provider."""
    return PROVIDERS.get(backend.partition(".")[0])
