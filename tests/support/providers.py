"""Loopback servers with the real API of each provider. They check requests as the provider does, and record them.

::

    with provider_server(ANTHROPIC, by_stage({"assessment": ASSESSMENT}), key="sk-test") as server:
        ...                                     # StageConfig(backend=ANTHROPIC.backend, api_base=server.url, ...)
        (seen,) = server.seen                   # the same form for every provider: system, parts, images, key, ...
        assert server.refused == []             # requests with a 4xx reply, in the provider's JSON

Scripts are as for ``fake_server``: they receive the request in OpenAI's form and return a text or a ``Reply``.
``fault`` and ``refusal`` are faults in each provider's form; they work with ``in_turn`` and ``by_stage``. The rules for
requests and most texts of errors are those of the providers, from the sources named in each file.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Protocol

from support.fake_server import Script, stage_of
from support.loopback import Arrived, Body, Reply, loopback
from support.provider_anthropic import Anthropic
from support.provider_base import Completion, Kind, Refused, Seen, tokens
from support.provider_chat import LLAMACPP, LMSTUDIO, OLLAMA, OPENAI, SGLANG, VLLM
from support.provider_gemini import Gemini


class Dialect(Protocol):
    """The API of a provider. ``base`` follows host and port in the address; ``logprobs`` is whether it returns them."""

    @property
    def name(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def base(self) -> str: ...
    @property
    def logprobs(self) -> bool: ...
    def read(self, arrived: Arrived, key: str | None) -> Seen: ...
    def write(self, completion: Completion) -> Body: ...
    def refusal(self) -> Body: ...
    def fault(self, kind: Kind, retry_after: float | None = None) -> Reply: ...


ANTHROPIC = Anthropic()
GEMINI = Gemini()
DIALECTS: tuple[Dialect, ...] = (OPENAI, ANTHROPIC, GEMINI, VLLM, SGLANG, OLLAMA, LLAMACPP, LMSTUDIO)


@dataclass
class ProviderServer:
    """A running server: its address for a configuration, accepted requests and refused ones, in order."""

    url: str
    dialect: Dialect
    seen: list[Seen] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def of(self, stage: str) -> list[Seen]:
        """Return the requests of one stage, named as ``by_stage`` does."""
        return [seen for seen in self.seen if stage_of(seen.as_chat()) == stage]


@contextmanager
def provider_server(dialect: Dialect, script: Script | str | Reply, key: str | None = None) -> Iterator[ProviderServer]:
    """Run a server on loopback. With a ``key``, it refuses other keys, if the real server checks keys."""
    lock = Lock()

    def respond(arrived: Arrived) -> Reply:
        try:
            seen = dialect.read(arrived, key)
        except Refused as refused:
            with lock:
                server.refused.append(str(refused))
            return refused.reply
        with lock:
            server.seen.append(seen)
        said = script(seen.as_chat()) if callable(script) else script
        reply = Reply(said) if isinstance(said, str) else said
        return reply if reply.raw_body is not None else written(dialect, seen, reply)

    with loopback(respond) as address:
        server = ProviderServer(f"{address}{dialect.base}", dialect)
        yield server


def fault(dialect: Dialect, kind: Kind, retry_after: float | None = None) -> Reply:
    """Return an error in the provider's own form: bad_key, context (too long), image (too large), no_images, no_model,
    overloaded, quota, rate_limit, server. ``retry_after``, in seconds, is where that provider puts it.

    Raises KeyError if the provider has no such error: a local server without keys cannot refuse one.
    """
    return dialect.fault(kind, retry_after)


def refusal(dialect: Dialect) -> Reply:
    """Return a refusal for safety reasons, with status 200. Raises KeyError if the provider has none."""
    return Reply(raw_body=json.dumps(dialect.refusal()).encode())


def cut_off(dialect: Dialect, text: str) -> Reply:
    """Return an answer that is cut off at its token limit."""
    return Reply(raw_body=json.dumps(dialect.write(Completion(text, "model-test", finish="length"))).encode())


def written(dialect: Dialect, seen: Seen, reply: Reply) -> Reply:
    """Return the reply in the provider's form, with log-probabilities if requested and supported."""
    entries = None
    if dialect.logprobs and (seen.sampling.get("logprobs") or seen.sampling.get("responseLogprobs")):
        most = int(seen.sampling.get("top_logprobs", seen.sampling.get("logprobs", 0)))
        spoken = tokens(reply.content or "") if reply.logprobs is None else reply.logprobs
        entries = [{**entry, "top_logprobs": list(entry["top_logprobs"])[:most]} for entry in spoken]
    completion = Completion(reply.content, seen.model, reply.usage, entries=entries)
    return replace(reply, raw_body=json.dumps(dialect.write(completion)).encode())
