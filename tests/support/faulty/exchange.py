"""One request to a faulty server, the actions of a fault, and the profile that defines when a fault applies."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from support.chat_request import stage_of
from support.faulty import healthy
from support.loopback import JSON, Body, Exchange, dumped


@dataclass
class Shared:
    """The state shared by all connections of a running server.

    ``seen`` counts each body's arrivals, ``questions`` the requests, ``in_flight`` those under way.
    """

    restart: Callable[[float], None]
    lock: threading.RLock = field(default_factory=threading.RLock)
    seen: dict[int, int] = field(default_factory=dict)
    questions: int = 0
    in_flight: int = 0
    last: dict[str, bytes] = field(default_factory=dict)  # by stage, the last healthy body


@dataclass(kw_only=True)
class Question(Exchange):
    """One received request; ``number`` counts these from 1, ``arrival`` how often the same body arrived."""

    shared: Shared
    number: int
    arrival: int

    @property
    def stage(self) -> str:
        """Return the field that the request asks for."""
        return stage_of(self.body)

    @property
    def key(self) -> str:
        """Return the key of the request."""
        return self.arrived.headers.get("authorization", "").partition(" ")[2].strip()

    def answer(self) -> Body:
        """Return the healthy answer, a new object each time."""
        return healthy.completion(self.body)


Act = Callable[[Question], None]
When = Callable[[Question], bool]
Expect = Literal["assessed", "any", "undetectable"]


def question(ex: Question) -> bool:
    """Return every request."""
    return True


def scoring(ex: Question) -> bool:
    """Match the question for the score, so that the earlier stages succeed."""
    return ex.stage == "assessment"


def once(ex: Question) -> bool:
    """Match the first arrival of a question, so that its repetition is answered."""
    return ex.arrival == 1


def with_image(ex: Question) -> bool:
    """Match questions with an image."""
    return b"image_url" in ex.raw


def with_logprobs(ex: Question) -> bool:
    """Match questions that ask for log-probabilities."""
    return bool(ex.body.get("logprobs"))


def with_schema(ex: Question) -> bool:
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


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    """Return the data in pieces."""
    return (data[at : at + size] for at in range(0, len(data), size))


def changed(change: Callable[[Body], Any]) -> Act:
    """Return the healthy answer after a change, in place or returned by the function."""

    def act(ex: Question) -> None:
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
