"""The seam between a request and its batch: inside a run by batches a request is answered from it, or waits.

``Model`` (``backends.engine``) asks here whether a run by batches is on; its wire, where the answer comes from.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import dspy

if TYPE_CHECKING:
    import httpx

Exchange = Callable[[bytes], "httpx.Response"]


class Pending(dspy.LMError):
    """The answer is not there yet: the image is judged again when those to ``ids`` are, or when there is room."""

    def __init__(self, ids: frozenset[str] = frozenset()) -> None:
        super().__init__("the request waits for its batch")
        self.ids = ids


class Lookup(Protocol):
    """What answers one request of a model; ``repeated`` once it gave an answer that the same image had before."""

    repeated: bool

    def __call__(self, body: bytes) -> "httpx.Response":
        """The answer to a body, which has marks in place of held images. Raises Pending, or UserError."""

    def settle(self, usd: float | None) -> None:
        """Note what the answer cost."""


class Deferring(Protocol):
    """A run by batches, as the engine sees it."""

    def lookup(self, model: Any, highest_usd: float | None) -> Lookup:
        """What answers a request that costs at most so much."""


_run: ContextVar[Deferring | None] = ContextVar("agenticiqa_batches", default=None)
_exchange: ContextVar[Exchange | None] = ContextVar("agenticiqa_exchange", default=None)


def deferring() -> Deferring | None:
    """The run by batches that this context belongs to, if any."""
    return _run.get()


def exchange() -> Exchange | None:
    """What answers a request in place of its server, if anything does."""
    return _exchange.get()


@contextmanager
def by_batches(run: Deferring) -> Iterator[None]:
    """Requests inside go by this run."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@contextmanager
def answered_from(source: Exchange) -> Iterator[None]:
    """Inside, requests are answered from there."""
    token = _exchange.set(source)
    try:
        yield
    finally:
        _exchange.reset(token)
