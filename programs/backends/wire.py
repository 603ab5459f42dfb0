"""Requests over HTTP in each provider's own format, by lm15's public provider classes."""

import asyncio
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from dspy import lm15

from agenticiqa.programs.backends.addresses import basic_login, without_login
from agenticiqa.programs.backends.held_images import Splicing, marked
from agenticiqa.programs.backends.held_images import Transport as AnyTransport
from agenticiqa.programs.backends.providers import Provider
from agenticiqa.programs.backends.transport import Transport, begin, finish, largest_answer
from agenticiqa.programs.backends.vetting import Vetted

BOUNDS = {f"{which}{what}" for which in ("min", "max") for what in ("Items", "Length", "imum")} | {
    "exclusiveMinimum",
    "exclusiveMaximum",
}
NAMED = {"properties", "$defs"}  # the keys inside of these are our names, not keywords


@dataclass
class Server:
    """A provider's interface at an address (``None``: its own), with a key.

    A name and password in the address are sent as basic authentication, in place of a key in the same header.
    ``timeout`` is the deadline of a request in seconds. ``max_tokens`` bounds the bytes of an answer.
    """

    provider: Provider
    model: str
    address: str | None = field(repr=False)
    key: str = field(repr=False)
    timeout: float
    max_tokens: int = 2048
    _connection: Any = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def prepared(self, request: lm15.Request) -> lm15.Request:
        """The request with a placeholder for each held image, whose bytes are put into the finished body.

        One that ends with an answer that was begun says so in the server's own way.
        """
        if _is_begun(request):
            extensions = {**(request.config.extensions or {}), **(self.provider.continues or {})}
            request = replace(request, config=replace(request.config, extensions=extensions))
        asked = request.config.response_format
        if asked and "schema" in asked and not self.provider.schema_bounds:
            config = replace(request.config, response_format={**asked, "schema": without_bounds(asked["schema"])})
            request = replace(request, config=config)
        return marked(request)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its answer. Raises lm15's errors."""
        response: lm15.Response = finish(self._connected().complete(request))
        return _as_asked(request, response)

    async def acomplete(self, request: lm15.Request) -> lm15.Response:
        """``complete``, async."""
        response: lm15.Response = await asyncio.wrap_future(begin(self._connected().complete(request)))
        return _as_asked(request, response)

    def _connected(self) -> Any:
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection

    def _connect(self) -> Any:
        route = self.provider.route
        config = lm15.RouterConfig(
            env={},  # no key is read from the environment
            api_keys={route: self.key},
            base_urls={route: without_login(self.address)} if self.address else None,
            providers=self.provider.definitions(),
        )
        connected = lm15.AsyncLMRouter(config).lm(f"{route}:{self.model}")
        connected.transport = Splicing(Vetted(Transport(self.timeout, largest_answer(self.max_tokens)), route))
        if basic := basic_login(self.address):
            connected.transport = Authorized(connected.transport, basic)
        return connected


class Authorized:
    """A transport that sends requests through another one with this ``Authorization`` header."""

    def __init__(self, inner: AnyTransport, authorization: str) -> None:
        self.inner, self._authorization = inner, authorization

    def stream(self, request: Any) -> Any:
        """Send the request, sync or async as the inner transport is."""
        others = [(name, value) for name, value in request.headers if name.lower() != "authorization"]
        request.headers = [*others, ("Authorization", self._authorization)]
        return self.inner.stream(request)


def _is_begun(request: lm15.Request) -> bool:
    return request.messages[-1].role == "assistant"


def _as_asked(request: lm15.Request, response: lm15.Response) -> lm15.Response:
    """The response; one token that was asked for to continue an answer is not cut off, though it ends at its limit."""
    if _is_begun(request) and request.config.max_tokens == 1 and response.finish_reason == "length":
        return replace(response, finish_reason="stop")
    return response


def without_bounds(schema: Any) -> Any:
    """A JSON schema without bounds on numbers and lengths, for servers that reject them; answers are validated here."""
    if isinstance(schema, list):
        return [without_bounds(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_bounds(inner) for name, inner in value.items()}
        if key in NAMED and isinstance(value, dict)
        else without_bounds(value)
        for key, value in schema.items()
        if key not in BOUNDS
    }
