"""List the providers that a configuration can name: their addresses and the features of their interfaces.

A row has the features that are requested first. A feature that a server refuses is not requested again
(``capabilities``).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agenticiqa.programs.backends.image_tokens import LLAMA_CPP, QWEN, Rule, claude_tokens, gemini_tokens, openai_tokens

Form = Literal["json_schema", "json_object", "off"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]

NO_KEY = "none"  # key for a server without keys; no header with it is sent
JPEG_PNG = frozenset({"image/jpeg", "image/png"})  # media types that every server decodes
WITH_WEBP = JPEG_PNG | {"image/webp"}


def names_of(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the names of media types of images, in order, such as "jpeg"."""
    return tuple(sorted(mime.removeprefix("image/") for mime in formats))


@dataclass(frozen=True)
class Provider:
    """One provider of models: address, key, and the features of its interface.

    ``key_env``: the environment variable of its key; ``None`` for a server of the user's own. ``address``: its own
    address, or where such a server listens by default; without one, ``api_base`` is needed. ``address_env``: the
    environment variables in which its clients read another address; ``path``: what they append to it. ``route``: lm15's
    name for its interface. ``token_limit``: the parameter of OpenAI's interface that limits the tokens of an answer.
    ``forms``: the ways to request JSON, the best first. ``logprobs``: the number of alternatives per token, 0 for none.
    ``schema_bounds``: whether a schema may contain keywords such as ``maxItems``. ``bills_schemas``: whether it adds
    the schema to the prompt and bills it; a server of the user's own turns it into a grammar. ``image_tokens``: the
    rule for the tokens of an image; ``models`` has the rules of models that several providers offer. ``formats``: the
    media types that it is known to decode. ``continues``: the fields of a request that continues an unfinished answer;
    ``None`` if the model would begin a new answer. ``reasoning_is_apart``: whether it counts hidden reasoning
    separately from output tokens. ``has_batches``: whether it has OpenAI's Batch API. ``models``: different values for
    some models, by a pattern that matches the beginning of their plain names (``models.plain_name``). ``elsewhere``:
    different values for another server with its interface.
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
    schema_bounds: bool = True
    bills_schemas: bool = False
    image_tokens: Rule = QWEN
    formats: frozenset[str] = JPEG_PNG
    continues: Mapping[str, Any] | None = None
    reasoning_is_apart: bool = False
    has_batches: bool = False
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    elsewhere: Mapping[str, Any] = field(default_factory=dict)

    @property
    def format_names(self) -> tuple[str, ...]:
        """The names of the formats that it decodes, in order, such as "jpeg"."""
        return names_of(self.formats)

    def of_model(self, name: str) -> "Provider":
        """Return the row with the values for the model with this plain name at the provider's own address."""
        changes = [change for pattern, change in self.models.items() if re.match(pattern, name)]
        return replace(self, **changes[0]) if changes else self

    def at_another_address(self) -> "Provider":
        """Return the row of a server of the user's own with this interface."""
        return replace(self, **self.elsewhere) if self.elsewhere else self


PROVIDERS: dict[str, Provider] = {
    # Also the row of any OpenAI-compatible server, with api_base: every feature of the interface is requested.
    "openai": Provider(
        "OPENAI_API_KEY",
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        token_limit="max_completion_tokens",
        bills_schemas=True,
        image_tokens=openai_tokens,
        formats=WITH_WEBP,
        has_batches=True,
        models={
            r"o\d|gpt-5(?!-chat|\.)": {"logprobs": 0},  # reasoning models answer 403 to log-probabilities
            r"gpt-3\.5|gpt-4(-|$)|gpt-4o-2024-05-13": {"forms": ("json_object",)},  # models without structured outputs
        },
        elsewhere={"formats": JPEG_PNG},
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
        schema_bounds=False,
        bills_schemas=True,
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
        bills_schemas=True,
        image_tokens=gemini_tokens,
        formats=WITH_WEBP,
        reasoning_is_apart=True,
    ),
    "vllm": Provider(formats=WITH_WEBP, continues={"continue_final_message": True, "add_generation_prompt": False}),
    "sglang": Provider(formats=WITH_WEBP, continues={"continue_final_message": True}),
    # Versions without log-probabilities ignore the request for them. Older versions do not decode WebP.
    "ollama": Provider(None, "http://localhost:11434/v1", ("OLLAMA_HOST", "OLLAMA_API_BASE"), "/v1"),
    # It continues an answer without extra fields, but refuses to if the model would reason first.
    "llamacpp": Provider(
        address="http://localhost:8080/v1",
        image_tokens=LLAMA_CPP,
        continues={"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "lmstudio": Provider(
        address="http://localhost:1234/v1",
        forms=("json_schema",),
        logprobs=0,
        image_tokens=LLAMA_CPP,
        formats=WITH_WEBP,
    ),
}

# The providers of well-known models, by a pattern of the beginning of their names.
WELL_KNOWN = {r"(chat)?gpt-|o\d\b": "openai", "claude-": "anthropic", "gemini-": "google"}


def row_of(backend: str) -> Provider | None:
    """Return the row for a backend's name, ``provider.model``; ``None`` for the name of no provider."""
    return PROVIDERS.get(backend.partition(".")[0])
