"""Requests over HTTP in each provider's own format, by lm15's public provider classes."""

import asyncio
import base64
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from dspy import lm15

from agenticiqa.programs.backends.held_images import Splicing, Transport, marked
from agenticiqa.programs.backends.providers import Provider
from agenticiqa.programs.errors import BackendError

CONNECT = 10.0  # seconds
MOST_CONNECTIONS = 512
BOUNDS = {f"{which}{what}" for which in ("min", "max") for what in ("Items", "Length", "imum")} | {
    "exclusiveMinimum",
    "exclusiveMaximum",
}
NAMED = {"properties", "$defs"}  # the keys inside of these are our names, not keywords


@dataclass
class Server:
    """A provider's interface at an address (``None``: its own), with a key; connections are kept and shared.

    A name and password in the address are sent as basic authentication, in place of a key in the same header.
    ``timeout`` is in seconds, for connecting (at most 10) and for each wait for bytes.
    """

    provider: Provider
    model: str
    address: str | None = field(repr=False)
    key: str = field(repr=False)
    timeout: float
    _sync: Any = field(default=None, repr=False)
    _by_loop: "WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = field(default_factory=WeakKeyDictionary, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def prepared(self, request: lm15.Request) -> lm15.Request:
        """The request with a placeholder for each held image, whose bytes are put into the finished body."""
        asked = request.config.response_format
        if asked and "schema" in asked and not self.provider.schema_bounds:
            config = replace(request.config, response_format={**asked, "schema": without_bounds(asked["schema"])})
            request = replace(request, config=config)
        return marked(request)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its answer. Raises lm15's errors."""
        with self._lock:
            if self._sync is None:
                self._sync = self._connected(lm15.LMRouter)
        response: lm15.Response = self._sync.complete(request)
        return response

    async def acomplete(self, request: lm15.Request) -> lm15.Response:
        """``complete``, async; each event loop has its own connections."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._by_loop:
                self._by_loop[loop] = self._connected(lm15.AsyncLMRouter)
        response: lm15.Response = await self._by_loop[loop].complete(request)
        return response

    def _connected(self, router: Any) -> Any:
        route = self.provider.route
        config = lm15.RouterConfig(
            env={},  # no key is read from the environment
            api_keys={route: self.key},
            base_urls={route: without_login(self.address)} if self.address else None,
            timeouts=lm15.Timeouts(
                connect=min(CONNECT, self.timeout), read=self.timeout, write=self.timeout, pool=self.timeout
            ),
            max_connections=MOST_CONNECTIONS,
            providers=self.provider.definitions(),
        )
        connected = router(config).lm(f"{route}:{self.model}")
        connected.transport = Splicing(connected.transport)
        if basic := _basic(self.address):
            connected.transport = Authorized(connected.transport, basic)
        return connected


class Authorized:
    """A transport that sends requests through another one with this ``Authorization`` header."""

    def __init__(self, inner: Transport, authorization: str) -> None:
        self.inner, self._authorization = inner, authorization

    def stream(self, request: Any) -> Any:
        """Send the request, sync or async as the inner transport is."""
        others = [(name, value) for name, value in request.headers if name.lower() != "authorization"]
        request.headers = [*others, ("Authorization", self._authorization)]
        return self.inner.stream(request)


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


def public_address(address: str) -> str:
    """Host, port and path of an address, valid or not: without a name, password or query, fit to be shown and saved."""
    return address.rpartition("://")[2].rpartition("@")[2].partition("?")[0].rstrip("/")


def checked_address(address: str) -> str:
    """The address as it is. Raises BackendError unless it is an HTTP address."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise BackendError(f"api_base {public_address(address)!r} is not an address such as http://127.0.0.1:8000/v1")
    return address


def without_login(address: str) -> str:
    """The address without its name and password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def secrets_in(address: str | None) -> tuple[str, ...]:
    """The secrets in an address, in each encoding that is sent: its password, or its name where it has no password."""
    parts = urlsplit(address or "")
    secret = parts.password or parts.username
    return (secret, unquote(secret), str(_basic(address)).removeprefix("Basic ")) if secret else ()


def _basic(address: str | None) -> str | None:
    login = urlsplit(address or "").netloc.rpartition("@")[0]
    name, _, password = map(unquote, login.partition(":"))
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" if login else None
