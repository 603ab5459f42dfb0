"""One request on a raw socket, the actions of a fault, and the profile that defines when a fault applies."""

import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from support.chat_request import stage_of
from support.faulty import healthy

Body = dict[str, Any]
JSON = "application/json"
BLOCK = 1 << 16


class Disconnected(Exception):
    """Raised when the client has closed the connection, or the server stops."""


@dataclass
class Shared:
    """The state shared by all connections of a running server.

    ``seen`` counts each body's arrivals, ``questions`` the requests, ``in_flight`` those under way.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    seen: dict[int, int] = field(default_factory=dict)
    questions: int = 0
    in_flight: int = 0
    last: dict[str, bytes] = field(default_factory=dict)  # by stage, the last healthy body
    restart: Callable[[float], None] = lambda seconds: None


@dataclass
class Exchange:
    """One received request and its connection.

    ``number`` counts questions from 1, ``arrival`` how often the same body arrived. After the answer the connection is
    kept while ``keep`` is true.
    """

    connection: socket.socket
    shared: Shared
    head: bytes
    raw: bytes
    body: Body
    number: int = 0
    arrival: int = 0
    keep: bool = True

    @property
    def stage(self) -> str:
        """Return the field that the request asks for."""
        return stage_of(self.body)

    @property
    def key(self) -> str:
        """Return the key of the request."""
        found = re.search(rb"(?im)^authorization: *bearer +(.*?)\r?$", self.head)
        return found[1].decode("latin-1") if found else ""

    def answer(self) -> Body:
        """Return the healthy answer, a new object each time."""
        return healthy.completion(self.body)

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
        if self.shared.stop.wait(seconds):
            raise Disconnected

    def hang(self) -> None:
        """Send nothing more until the client leaves or the server stops."""
        self.keep = False
        self.connection.settimeout(0.1)
        while not self.shared.stop.is_set():
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


Act = Callable[[Exchange], None]
When = Callable[[Exchange], bool]
Expect = Literal["assessed", "any", "undetectable"]


def question(ex: Exchange) -> bool:
    """Return every request."""
    return True


def scoring(ex: Exchange) -> bool:
    """Match the question for the score, so that the earlier stages succeed."""
    return ex.stage == "assessment"


def once(ex: Exchange) -> bool:
    """Match the first arrival of a question, so that its repetition is answered."""
    return ex.arrival == 1


def with_image(ex: Exchange) -> bool:
    """Match questions with an image."""
    return b"image_url" in ex.raw


def with_logprobs(ex: Exchange) -> bool:
    """Match questions that ask for log-probabilities."""
    return bool(ex.body.get("logprobs"))


def with_schema(ex: Exchange) -> bool:
    """Match questions that ask for JSON with a schema."""
    return ex.body.get("response_format", {}).get("type") == "json_schema"


def of_stage(*names: str) -> When:
    """Return the questions of these stages."""
    return lambda ex: ex.stage in names


def first(count: int) -> When:
    """Return the first questions of a run."""
    return lambda ex: 0 < ex.number <= count


def after(count: int) -> When:
    """Return all questions but the first."""
    return lambda ex: ex.number > count


def each(nth: int) -> When:
    """Return every n-th question."""
    return lambda ex: ex.number > 0 and ex.number % nth == 0


@dataclass(frozen=True)
class Profile:
    """A fault: its name, its action, and the affected requests; all others get healthy answers.

    ``expect`` is ``assessed`` where a good client gets every answer within its retries, ``undetectable`` where wrong
    answers look like right ones.
    ``slow`` profiles never end by themselves. ``workers``, ``photos`` and ``budget`` (a share of the healthy run's
    price, as ``--max-usd``) change the run that a sweep makes of it.
    """

    name: str
    what: str
    act: Act
    when: When = question
    expect: Expect = "any"
    slow: bool = False
    workers: int | None = None
    photos: int | None = None
    budget: float | None = None
    connections: int | None = None  # more than that many at a time are reset
    family: str = ""


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


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    """Return the data in pieces."""
    return (data[at : at + size] for at in range(0, len(data), size))


def changed(change: Callable[[Body], Any]) -> Act:
    """Return the healthy answer after a change, in place or returned by the function."""

    def act(ex: Exchange) -> None:
        body = ex.answer()
        result = change(body)
        ex.reply(body if result is None else result)

    return act


def rewritten(change: Callable[[bytes], bytes], headers: str = "", kind: str | None = JSON) -> Act:
    """Return the healthy answer's JSON after a change of its bytes."""
    return lambda ex: ex.reply(change(dumped(ex.answer())), headers=headers, kind=kind)


def said(content: Any) -> Act:
    """Return the healthy answer with this content of its message, or with a function applied to its content."""

    def change(body: Body) -> None:
        message = body["choices"][0]["message"]
        message["content"] = content(message["content"]) if callable(content) else content
        body["choices"][0]["logprobs"] = None

    return changed(change)


def fails(status: str, body: Any = None, headers: str = "", kind: str | None = JSON) -> Act:
    """Return an error in OpenAI's form, or with this body."""
    code = int(status.split()[0])
    error = {"error": {"message": f"refused with {status}", "type": "error", "code": code}} if body is None else body
    return lambda ex: ex.reply(error, status, headers, kind)
