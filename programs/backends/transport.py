"""Send HTTP requests with limits on time and size, as a transport of httpx, with httpx's pool of connections."""

import os
import re
import ssl
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from functools import cache
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from dspy import lm15

from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.failures import NoConnection, causes, readable_error
from agenticiqa.programs.backends.held_images import with_held_images
from agenticiqa.programs.backends.limits import Halted
from agenticiqa.programs.backends.own_network import is_listed, is_loopback
from agenticiqa.programs.backends.providers import NO_KEY
from agenticiqa.programs.backends.run_context import current

# Bytes of an answer: a token with twenty alternatives, their log-probabilities and bytes takes 1.6 KB. With four
# Chinese characters, escaped and with blanks in the JSON, it takes 2.9 KB.
PER_TOKEN = 3 << 10
BESIDE_TOKENS = 2 << 20  # bytes for everything else in an answer
CONNECT = 10.0  # seconds
CHECK_SECONDS = 0.2  # seconds after which a waiting request checks whether its run was aborted
PIECE = 256 << 10  # bytes that are written or unpacked at a time
PORTS = {"http": 80, "https": 443}
Answer = tuple[httpx.Response, bytes]  # a response, and its body
WITHOUT_KEY = frozenset({NO_KEY, f"Bearer {NO_KEY}"})  # values of headers
ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class Transport(httpx.BaseTransport):
    """An httpx transport that inserts held images into bodies and ends each request after ``timeout`` seconds.

    ``sent`` names the headers to send; ``None`` sends all. A header with ``NO_KEY`` in place of a key is not sent.
    Raises ``lm15.TransportError``, with a TimeoutError as its cause after the deadline, ``lm15.ServerError`` for an
    answer of more than ``largest`` bytes, and ``lm15.InvalidRequestError`` for a redirect. Redirects are never
    followed, because the image and the key would be sent to another server. Raises Halted once the run is aborted. The
    transport is for one server. Its connections are closed with it.

    With ``reuse``, connections are used again, which saves a TLS handshake for each request. Without it, a server that
    sends an answer twice cannot have the second one taken for the answer to another request.
    """

    def __init__(self, timeout: float, largest: int, sent: frozenset[str] | None = None, reuse: bool = False) -> None:
        self.timeout, self.largest, self.sent, self.reuse = timeout, largest, sent, reuse
        self._proxy: str | None = None  # value of the environment at the first request; "" for none
        self._pools: dict[int, httpx.HTTPTransport] = {}  # pool of each process: forks share no connections
        weakref.finalize(self, _close, self._pools)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its complete answer."""
        pieces = with_held_images(request.read())
        headers = [
            (name, value)
            for name, value in request.headers.multi_items()
            if name not in ABOUT_THE_BODY and (self.sent is None or name in self.sent) and value not in WITHOUT_KEY
        ]
        headers += [("content-length", str(sum(map(len, pieces)))), ("accept-encoding", "identity")]
        # In parts, because httpx copies the rest of a part after each write.
        parts = (piece[start : start + PIECE] for piece in pieces for start in range(0, len(piece), PIECE))
        connect = min(CONNECT, self.timeout / 2)
        timeouts = {"connect": connect, "read": self.timeout, "write": self.timeout}
        url = str(request.url)
        if self._proxy is None:
            self._proxy = proxy_for(url)
        ready = httpx.Request(request.method, url, headers=headers, content=parts, extensions={"timeout": timeouts})
        with _as_transport_error(url, self._proxy, connect, self.timeout):
            response, body = _in_time(self.timeout, lambda: self._answer(ready))
        if response.status_code >= 400:
            body = readable_error(body)
        # Raw headers, because httpx reads characters in headers that it cannot write.
        kept = [(name, value) for name, value in response.headers.raw if name.lower().decode() not in ABOUT_THE_BODY]
        return httpx.Response(response.status_code, headers=kept, content=body)

    def _answer(self, request: httpx.Request) -> Answer:
        deadline, body = time.monotonic() + self.timeout, bytearray()
        with closing(self._pool().handle_request(request)) as response:
            if response.has_redirect_location:
                raise lm15.InvalidRequestError(
                    f"the server redirects to {public_address(response.headers['location'])}, but redirects are not "
                    "followed: set api_base to the right address",
                    status=response.status_code,
                )
            for piece in _unpacked(response):
                body += piece
                if len(body) > self.largest:
                    raise lm15.ServerError(f"the answer is larger than {self.largest / (1 << 20):g} MiB")
                if time.monotonic() > deadline:
                    raise TimeoutError
        return response, bytes(body)

    def _pool(self) -> httpx.HTTPTransport:
        pool = self._pools.get(os.getpid())
        if pool is None:
            limits = httpx.Limits(max_keepalive_connections=None if self.reuse else 0)  # no limit, or no reuse
            pool = httpx.HTTPTransport(verify=_tls(), proxy=self._proxy or None, limits=limits)
        return self._pools.setdefault(os.getpid(), pool)


def _close(pools: dict[int, httpx.HTTPTransport]) -> None:
    if pool := pools.get(os.getpid()):
        pool.close()


def _in_time(seconds: float, function: Callable[[], Answer]) -> Answer:
    """Return the result of a function that runs in a thread.

    httpx limits the time of each read and write, so a server that sends single bytes could hold a request forever.

    Raises TimeoutError after this number of seconds, and Halted as soon as the run is aborted.
    """
    future, aborted, deadline = Future[Answer](), current().limits.aborted, time.monotonic() + seconds

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not future.done():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if aborted.is_set():
            raise Halted("interrupted")
        wait([future], min(left, CHECK_SECONDS))
    return future.result()


def _unpacked(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body in pieces of limited size, unpacked if the server compressed it without being asked to."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise lm15.ServerError(f"the answer is compressed as {encoding[:20]!r}, which was not asked for")
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    for piece in response.iter_raw():
        if encoding == "identity":
            yield piece
            continue
        while piece:
            yield unpack.decompress(piece, PIECE)
            piece = unpack.unconsumed_tail


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def largest_answer(max_tokens: int) -> int:
    """Return the largest size in bytes of an answer of ``max_tokens`` tokens: 3.5 MiB for 512, 8 MiB for 2,048."""
    return BESIDE_TOKENS + PER_TOKEN * max_tokens


def proxy_for(url: str) -> str:
    """Return the proxy for this address from the environment (``HTTPS_PROXY``, ``NO_PROXY``, ...); "" without one.

    Addresses of this machine have no proxy.
    """
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if is_loopback(host) or is_listed(host, port, proxies.get("no", "")):
        return ""
    if proxy_bypass(parts.netloc.rpartition("@")[2]):  # also by the settings of macOS and Windows
        return ""
    return proxies.get(parts.scheme) or proxies.get("all", "")


@contextmanager
def _as_transport_error(url: str, proxy: str, connect: float, timeout: float) -> Iterator[None]:
    """Convert a connection's exceptions to ``lm15.TransportError`` with a plain message."""
    try:
        yield
    except httpx.ConnectTimeout as error:
        message = f"failed to connect to {public_address(url)}: no connection within {connect:g} s"
        raise NoConnection(message) from error
    except (httpx.TimeoutException, TimeoutError) as error:
        raise lm15.TransportError(f"no answer within {timeout:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error, OSError, ValueError) as error:
        at = urlsplit(proxy or url)
        through = f" through the proxy {at.hostname}:{at.port}" if proxy else ""
        kind = NoConnection if isinstance(error, httpx.ConnectError) else lm15.TransportError
        raise kind(_reason(error, urlsplit(url)) + through) from error


def _reason(error: Exception, url: SplitResult) -> str:
    if isinstance(error, httpx.ConnectError):
        system = next(cause for cause in reversed(causes(error)) if isinstance(cause, OSError))
        number = 0 if isinstance(system, ssl.SSLError) else system.errno or 0  # OpenSSL has its own error numbers
        reason = os.strerror(number) if number > 0 else str(system)
        return f"failed to connect to {url.hostname}:{url.port or PORTS.get(url.scheme)}: {reason}"
    if isinstance(error, httpx.RemoteProtocolError) and not re.search("disconnected|closed", str(error)):
        return str(error)
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | ConnectionError):
        return "connection closed before the end of the answer"
    return str(error) or type(error).__name__
