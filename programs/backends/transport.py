"""Send HTTP requests with limits on time and size, as a transport of httpx.

Each request has its own connection. A late, repeated or unsolicited answer can therefore never be mistaken for the
answer to another request. Reads and writes of a connection end at the deadline of its request, whatever the server
sends.
"""

import ipaddress
import os
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
from dspy import lm15

from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.failures import causes, readable_error
from agenticiqa.programs.backends.held_images import with_held_images

# Bytes of an answer: a token with twenty alternatives, their log-probabilities and bytes takes 1.6 KB. With four
# Chinese characters, escaped and with blanks in the JSON, it takes 2.9 KB.
PER_TOKEN = 3 << 10
BESIDE_TOKENS = 2 << 20  # bytes for everything else in an answer
CONNECT = 10.0  # seconds
PIECE = 256 << 10  # bytes that are written at a time
FAULTS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, httpx.HTTPError, httpx.InvalidURL)
PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class Transport(httpx.BaseTransport):
    """An httpx transport that inserts held images into bodies and ends each request after ``timeout`` seconds.

    ``sent`` names the headers to send; ``None`` sends all. Raises ``lm15.TransportError``, with a TimeoutError as its
    cause after the deadline, ``lm15.ServerError`` for an answer of more than ``largest`` bytes, and
    ``lm15.InvalidRequestError`` for a redirect. Redirects are never followed, because the image and the key would be
    sent to another server.
    """

    def __init__(self, timeout: float, largest: int, sent: frozenset[str] | None = None) -> None:
        self.timeout, self.largest, self.sent = timeout, largest, sent

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its complete answer."""
        pieces = with_held_images(request.read())
        headers = [
            (name, value)
            for name, value in request.headers.multi_items()
            if name not in ABOUT_THE_BODY and (self.sent is None or name in self.sent)
        ]
        headers += [("content-length", str(sum(map(len, pieces)))), ("accept-encoding", "identity")]
        url, proxy = str(request.url), proxy_for(str(request.url))
        with (
            _as_transport_error(url, proxy, min(CONNECT, self.timeout), self.timeout),
            self._connections(url, proxy) as connections,
            connections.stream(request.method, url, headers=headers, content=iter(pieces)) as answer,
        ):
            response = httpx.Response(answer.status, headers=answer.headers, content=answer.iter_stream())
            if response.status_code in REDIRECTS and (target := response.headers.get("location")):
                raise lm15.InvalidRequestError(
                    f"the server redirects to {public_address(target)}, but redirects are not followed: "
                    "set api_base to the right address",
                    status=response.status_code,
                )
            body = self._bounded(response)
        if response.status_code >= 400:
            body = readable_error(body)
        # Raw headers, because httpx reads characters in headers that it cannot write.
        kept = [(name, value) for name, value in response.headers.raw if name.lower().decode() not in ABOUT_THE_BODY]
        return httpx.Response(response.status_code, headers=kept, content=body)

    def _connections(self, url: str, proxy: str | None) -> httpcore.ConnectionPool:
        settings: dict[str, Any] = {
            "ssl_context": _tls() if url.startswith("https:") else None,
            "network_backend": Network(self.timeout),
            "max_keepalive_connections": 0,
        }
        if proxy is None:
            return httpcore.ConnectionPool(**settings)
        login = httpx.Proxy(proxy)
        return httpcore.HTTPProxy(str(login.url), proxy_auth=login.raw_auth, **settings)

    def _bounded(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self.largest:
                raise lm15.ServerError(f"the answer is larger than {self.largest / (1 << 20):g} MiB")
        return bytes(body)


class Network(httpcore.NetworkBackend):
    """A network backend of httpcore: each connection ends ``timeout`` seconds after it was opened."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any) -> "Stream":
        """Connect, within 10 seconds."""
        deadline = time.monotonic() + self.timeout
        opened = httpcore.SyncBackend().connect_tcp(host, port, min(CONNECT, self.timeout), *args, **options)
        return Stream(opened, deadline)


class Stream(httpcore.NetworkStream):
    """A connection with a ``deadline`` (of ``time.monotonic``) for all reads and writes; their timeouts are ignored."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: float) -> None:
        self.inner, self.deadline = inner, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """As of httpcore."""
        return self.inner.read(max_bytes, self._remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """As of httpcore."""
        for start in range(0, len(buffer), PIECE):
            self.inner.write(buffer[start : start + PIECE], self._remaining())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "Stream":
        """As of httpcore."""
        return Stream(self.inner.start_tls(ssl_context, server_hostname, self._remaining()), self.deadline)

    def close(self) -> None:
        """As of httpcore."""
        self.inner.close()

    def get_extra_info(self, info: str) -> Any:
        """As of httpcore."""
        return self.inner.get_extra_info(info)

    def _remaining(self) -> float:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        return remaining


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def largest_answer(max_tokens: int) -> int:
    """Return the largest size in bytes of an answer of ``max_tokens`` tokens: 3.5 MiB for 512, 8 MiB for 2,048."""
    return BESIDE_TOKENS + PER_TOKEN * max_tokens


def proxy_for(url: str) -> str | None:
    """Return the proxy for this address from the environment (``HTTPS_PROXY``, ``NO_PROXY``, ...).

    Return ``None`` for addresses of this machine.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    entries = filter(None, re.split(r"[,\s]+", proxies.get("no", "").lower()))
    if is_loopback(host) or proxy_bypass(host) or any(matches_no_proxy(host, parts.port, each) for each in entries):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def matches_no_proxy(host: str, port: int | None, entry: str) -> bool:
    """Return whether an entry of ``NO_PROXY`` matches a host, as curl and requests read it (urllib differs).

    An entry is an IPv4 or IPv6 address or network, with or without brackets ("[fd00::]/8"), or a domain, which includes
    its subdomains. Each may have a port.
    """
    named, _, at = entry.rpartition(":") if re.fullmatch(r"([^:]+|\[.*\]):\d+", entry) else (entry, "", "")
    if at and int(at) != port:
        return False
    named = re.sub(r"[\[\]]", "", named)
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        domain = named.removeprefix("*").strip(".")
        return bool(domain) and f".{host.lower().rstrip('.')}".endswith(f".{domain}")
    try:
        return (getattr(address, "ipv4_mapped", None) or address) in ipaddress.ip_network(named, strict=False)
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _as_transport_error(url: str, proxy: str | None, connect: float, timeout: float) -> Iterator[None]:
    """Convert a connection's exceptions to ``lm15.TransportError`` with a plain message."""
    try:
        yield
    except httpcore.ConnectTimeout as error:
        message = f"failed to connect to {public_address(url)}: no connection within {connect:g} s"
        raise lm15.TransportError(message) from error
    except (httpcore.TimeoutException, TimeoutError) as error:
        raise lm15.TransportError(f"no answer within {timeout:g} s") from error
    except (*FAULTS, OSError, ValueError) as error:
        at = urlsplit(proxy or url)
        through = f" through the proxy {at.hostname}:{at.port}" if proxy else ""
        raise lm15.TransportError(_reason(error, urlsplit(url)) + through) from error


def _reason(error: Exception, url: Any) -> str:
    if isinstance(error, httpcore.ConnectError):
        system = next(cause for cause in reversed(causes(error)) if isinstance(cause, OSError))
        number = 0 if isinstance(system, ssl.SSLError) else system.errno or 0  # OpenSSL has its own error numbers
        reason = os.strerror(number) if number > 0 else str(system)
        return f"failed to connect to {url.hostname}:{url.port or PORTS.get(url.scheme)}: {reason}"
    if isinstance(error, httpcore.RemoteProtocolError) and not re.search("disconnected|closed", str(error)):
        return str(error)
    if isinstance(error, httpcore.NetworkError | httpcore.RemoteProtocolError | ConnectionError):
        return "connection closed before the end of the answer"
    return str(error) or type(error).__name__
