"""The HTTP server of the tests, on raw sockets of 127.0.0.1, so that a behavior controls every byte.

A behavior is a function that answers one request (``Exchange``). ``HttpServer`` runs any of them:

* ``loopback(respond)``: a ``Reply`` for each request, also with a delay or cut off
* ``fake_server``: scripted answers; ``provider_server``: in the dialect of a provider; ``batch_server``: its batches
* ``faulty_server``: a healthy server with one fault of a table
"""

import contextlib
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any, BinaryIO

Body = dict[str, Any]

BLOCK = 1 << 16
JSON = "application/json"
REASONS = {status.value: status.phrase for status in HTTPStatus}


class Disconnected(Exception):
    """Raised when the client has closed the connection, or the server stops."""


@dataclass(frozen=True)
class Arrived:
    """A request as received: path with query, headers by their names in lower case, body."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    method: str = "POST"


@dataclass
class Exchange:
    """One received request and its connection, which is kept after the answer while ``keep`` is true."""

    connection: socket.socket
    stop: threading.Event
    head: bytes
    raw: bytes
    keep: bool = True

    @cached_property
    def arrived(self) -> Arrived:
        """Return the request."""
        first, *lines = self.head.decode("latin-1").split("\r\n")
        named = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in named}
        method, path, _ = first.split(" ")
        return Arrived(path, headers, self.raw, method)

    @cached_property
    def body(self) -> Body:
        """Return the JSON of the request."""
        found: Body = json.loads(self.raw or b"{}")
        return found

    def send(self, data: bytes) -> None:
        """Send at once. Raises Disconnected if the client has closed the connection."""
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise Disconnected from error

    def reply(
        self, body: bytes | Any, status: str = "200 OK", headers: str = "", kind: str | None = JSON, length: str = ""
    ) -> None:
        """Send an answer; a body other than bytes becomes JSON. ``headers`` are complete lines, each with its CRLF."""
        self.send(http(body, status, headers, kind, length))

    def pause(self, seconds: float) -> None:
        """Wait. Raises Disconnected when the server stops meanwhile."""
        if self.stop.wait(seconds):
            raise Disconnected

    def hang(self) -> None:
        """Send nothing more until the client leaves or the server stops."""
        self.keep = False
        self.connection.settimeout(0.1)
        while not self.stop.is_set():
            try:
                if not self.connection.recv(BLOCK):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def close(self) -> None:
        """Close after the bytes that were sent."""
        self.keep = False

    def reset(self) -> None:
        """Close with RST, which also discards bytes that the client has not read yet."""
        self.keep = False
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


Behavior = Callable[[Exchange], None]


class HttpServer:
    """A running server: each request gets the answer of ``behave``. Port 0 is any free port, ``tls`` makes it HTTPS."""

    def __init__(self, behave: Behavior, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.most: int | None = None  # connections at a time; further ones are reset
        self._behave, self._tls = behave, tls
        self._open = set[socket.socket]()
        self._lock = threading.Lock()
        self._stopped = False
        self._period = threading.Event()  # set when ``disconnect`` ends the requests under way
        self._listen(port)
        self.port = int(self._listener.getsockname()[1])
        self.address = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def disconnect(self) -> None:
        """Close all connections, also of requests under way."""
        self._period.set()
        self._period = threading.Event()
        with self._lock:
            connections = [*self._open]
        for connection in connections:
            _closed(connection)

    def restart(self, seconds: float) -> None:
        """Close everything, and listen at the same address again after this many seconds."""
        _closed(self._listener)
        self.disconnect()
        if not self._period.wait(seconds):
            self._listen(self.port)

    def stop(self) -> None:
        """Close everything, as when a process ends."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self.disconnect()
        self._listener.close()

    def _listen(self, port: int) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(256)

    def _accept(self) -> None:
        while not self._stopped:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, to stop or to restart
                if not self._stopped:
                    self._period.wait(0.02)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                full = self.most is not None and len(self._open) >= self.most
                self._open.add(connection)
            if full:
                Exchange(connection, self._period, b"", b"").reset()
                self._open.discard(connection)
                continue
            threading.Thread(target=self._serve, args=(connection, self._period), daemon=True).start()

    def _serve(self, connection: socket.socket, period: threading.Event) -> None:
        served = connection
        try:
            if self._tls is not None:
                served = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._open = self._open - {connection} | {served}
            with served.makefile("rb", BLOCK) as stream:
                while not period.is_set() and (request := _read(stream)):
                    exchange = Exchange(served, period, *request)
                    self._behave(exchange)
                    if not exchange.keep:
                        break
        except (OSError, ValueError, Disconnected):
            pass  # the client closed the connection during a request
        finally:
            with self._lock:
                self._open.discard(served)
            _closed(served)


def _read(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """Return head and body of the next request, ``None`` at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(BLOCK)
        if not line or len(head) > BLOCK:
            return None
        head += line
    names = head.lower()
    if b"\r\ntransfer-encoding: chunked" not in names:
        found = re.search(rb"\r\ncontent-length: *(\d+)", names)
        return head, stream.read(int(found[1])) if found else b""
    pieces = []
    while size := int(stream.readline(), 16):
        pieces.append(stream.read(size))
        stream.readline()
    stream.readline()
    return head, b"".join(pieces)


def _closed(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()


def http(
    body: bytes | Any, status: str = "200 OK", headers: str = "", kind: str | None = JSON, length: str = ""
) -> bytes:
    """Return the bytes of an answer; ``length`` replaces the right Content-Length, ``kind=None`` omits the type."""
    data = body if isinstance(body, bytes) else dumped(body)
    typed = "" if kind is None else f"Content-Type: {kind}\r\n"
    head = f"HTTP/1.1 {status}\r\n{typed}{headers}Content-Length: {length or len(data)}\r\n\r\n"
    return head.encode("latin-1") + data


def dumped(value: Any) -> bytes:
    """Return a value as JSON, also NaN and Infinity."""
    return json.dumps(value).encode()


@dataclass(frozen=True)
class Reply:
    """One answer of a server; in a script a plain string means ``Reply(content=...)``.

    ``delay`` is in seconds and ends early when the server stops. ``cut`` closes the connection within the body.
    ``raw_body`` is sent in place of the JSON. ``logprobs`` is the content list of the first choice's log-probabilities.
    """

    content: str | None = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    raw_body: bytes | None = None
    logprobs: Sequence[Mapping[str, Any]] | None = None
    usage: tuple[int, int] = (10, 5)


@contextmanager
def serving(behave: Behavior, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """Run a server until the context ends."""
    server = HttpServer(behave, port, tls)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def loopback(respond: Callable[[Arrived], Reply], port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server until the context ends, and yield its address without a path, such as ``http://127.0.0.1:8123``.

    ``respond`` returns the reply with its ``raw_body``; if it raises, the reply is status 400 with the exception.
    """

    def behave(ex: Exchange) -> None:
        try:
            reply = respond(ex.arrived)
        except Exception as error:  # a faulty script shows up in the test, not as a hanging connection
            reply = error_reply(400, {"error": {"message": repr(error)}})
        ex.pause(reply.delay)
        data = reply.raw_body or b""
        status = f"{reply.status} {REASONS.get(reply.status, '')}"
        headers = "".join(f"{name}: {value}\r\n" for name, value in {"Content-Type": JSON, **reply.headers}.items())
        ex.reply(data[: len(data) // 2] if reply.cut else data, status, headers, kind=None, length=str(len(data)))
        ex.keep = not reply.cut

    with serving(behave, port, tls) as server:
        yield server.address


def error_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error with a JSON body."""
    return Reply(status=status, headers=headers or {}, raw_body=json.dumps(body).encode())


def chat_completion(reply: Reply, model: str) -> bytes:
    """Return a reply in the form that all OpenAI-compatible servers share."""
    asked, written = reply.usage
    choice: Body = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.content},
        "finish_reason": "stop",
    }
    if reply.logprobs is not None:
        choice["logprobs"] = {"content": list(reply.logprobs), "refusal": None}
    return json.dumps(
        {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [choice],
            "usage": {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written},
        }
    ).encode()


def tokens(text: str, choices: Mapping[str, Mapping[str, float]] | None = None) -> list[dict[str, Any]]:
    """Return log-probabilities of an answer, word by word; ``choices`` has alternatives for some words."""
    entries = []
    for token in re.findall(r"\w+|\W", text):
        others = (choices or {}).get(token, {token: -0.01})
        ranked = sorted(others.items(), key=lambda item: -item[1])
        entries.append({**_token(token, others[token]), "top_logprobs": [_token(*each) for each in ranked]})
    return entries


def spoken(text: str, choices: Mapping[str, Mapping[str, float]]) -> Reply:
    """Return an answer with log-probabilities, for requests that ask for them."""
    return Reply(text, logprobs=tokens(text, choices))


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
