"""HTTP requests with bounds on time and size, by aiohttp, in one event loop of this package.

Each request has a connection of its own: an answer that a server sends too late, twice or unasked can never be taken as
the answer to another request. The loop runs in a thread, so that a request ends at its deadline and when it is
cancelled, whatever the server sends, for sync and async callers alike.
"""

import asyncio
import atexit
import ipaddress
import os
import ssl
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from dspy import lm15

from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.error_text import readable_error

T = TypeVar("T")

# Bytes of an answer: a token with twenty alternatives, their log-probabilities and bytes takes 1.6 KB, in four Chinese
# characters, escaped and with blanks in the JSON, 2.9 KB.
PER_TOKEN = 3 << 10
BESIDE_TOKENS = 2 << 20
CONNECT = 10.0  # seconds
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Prepared(Protocol):
    """A request as lm15 makes it."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Answered:
    """A response as lm15 reads it, already whole."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    http_version: str
    body: bytes

    async def read(self) -> bytes:
        """The body."""
        return self.body


class Transport:
    """Sends requests for lm15's async providers; ``timeout`` in seconds is the deadline of each.

    Raises ``lm15.TransportError``, with a TimeoutError as its cause when the deadline has passed, ``lm15.ServerError``
    for an answer of more than ``largest`` bytes, and ``lm15.InvalidRequestError`` for a redirect, which is never
    followed: it would send image and key to another place.
    """

    def __init__(self, timeout: float, largest: int) -> None:
        self.timeout, self.largest = timeout, largest

    @asynccontextmanager
    async def stream(self, request: Prepared) -> AsyncIterator[Answered]:
        """Send one request; the answer is complete when the context is entered."""
        yield await self._exchange(request)

    async def _exchange(self, request: Prepared) -> Answered:
        proxy = proxy_for(request.url)
        try:
            async with (
                asyncio.timeout(self.timeout),
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(force_close=True),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT, self.timeout)),
                ) as session,
                session.request(
                    request.method,
                    request.url,
                    data=request.body,
                    headers=request.headers,
                    allow_redirects=False,
                    proxy=proxy,
                ) as response,
            ):
                if response.status in REDIRECTS and (target := response.headers.get("Location")):
                    raise lm15.InvalidRequestError(
                        f"the server redirects to {public_address(target)}, which is not followed: "
                        "set api_base to the right address",
                        status=response.status,
                    )
                headers = [(name, value) for name, value in response.headers.items()]
                version = "1.1" if response.version is None else f"{response.version.major}.{response.version.minor}"
                body = await _bounded(response, self.largest)
                if response.status >= 400:
                    body = readable_error(body)
                return Answered(response.status, response.reason or "", headers, f"HTTP/{version}", body)
        except aiohttp.ConnectionTimeoutError as error:
            waited = f"no connection within {min(CONNECT, self.timeout):g} s"
            raise lm15.TransportError(f"failed to connect to {public_address(request.url)}: {waited}") from error
        except TimeoutError as error:
            raise lm15.TransportError(f"no answer within {self.timeout:g} s") from error
        except (aiohttp.ClientError, aiohttp.http.HttpProcessingError, ssl.SSLError, OSError, ValueError) as error:
            raise lm15.TransportError(_in_words(error, proxy)) from error


def largest_answer(max_tokens: int) -> int:
    """The bytes that an answer of so many tokens may have: 3.5 MiB for 512, 8 MiB for 2,048."""
    return BESIDE_TOKENS + PER_TOKEN * max_tokens


async def _bounded(response: aiohttp.ClientResponse, largest: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > largest:
            response.close()
            raise lm15.ServerError(f"the answer is larger than {largest / (1 << 20):g} MiB")
    return bytes(body)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address (``HTTPS_PROXY``, ``NO_PROXY``, ...).

    ``None`` for this machine's own addresses.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme) or getproxies().get("all")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _in_words(error: Exception, proxy: str | None) -> str:
    through = f" through the proxy {urlsplit(proxy).hostname}:{urlsplit(proxy).port}" if proxy else ""
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        number = 0 if isinstance(cause, ssl.SSLError) else cause.errno or 0  # OpenSSL numbers its errors otherwise
        reason = os.strerror(number) if number > 0 else str(cause)
        return f"failed to connect to {error.host}:{error.port}{through}: {reason}"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | ConnectionError):
        return f"connection closed before the end of the answer{through}"
    return f"{str(error) or type(error).__name__}{through}"


_lock = Lock()
_loop: asyncio.AbstractEventLoop | None = None
_process = 0


def begin(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Run a coroutine in the loop of this package, in the caller's context; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, _running_loop())


def finish(work: Coroutine[Any, Any, T]) -> T:
    """As ``begin``, and wait for the end; an interrupt of the waiting thread cancels the work."""
    future = begin(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _process
    with _lock:
        if _loop is None or _process != os.getpid():  # a forked process has no thread for its parent's loop
            _loop, _process = asyncio.new_event_loop(), os.getpid()
            Thread(target=_loop.run_forever, name="agenticiqa-http", daemon=True).start()
            atexit.register(_loop.call_soon_threadsafe, _loop.stop)
        return _loop
