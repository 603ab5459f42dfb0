"""Limit the requests to a server at a time, and make all of them wait when it asks one of them to wait.

A request holds its place until it is answered or given up. A request that the server refused for now is sent again
after its wait, once fewer are under way than when it was refused. Until then only one new request is sent at a time, as
more would take the room that it waits for.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic

from dspy import lm15

from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.backends.retries import worth_another

BUSY = frozenset({429, 503, 529})
LOOK = 0.2  # seconds after which a waiting request checks the clock, and whether its run was halted


class InFlight:
    """The requests of this process to one server. Thread-safe."""

    def __init__(self, server: str = "") -> None:
        self.server = server
        self.places: dict[object, float] = {}  # that are taken, each with the room that its request waits for
        self._under_way = 0
        self._free_at = 0.0  # by ``monotonic``: nothing is sent before
        self._changed = Condition()

    @contextmanager
    def place(self, limits: Limits) -> Iterator[object]:
        """Wait for one of ``limits.in_flight`` places, and hold it for a request and its retries; yields the place."""
        place = object()
        with self._changed:
            while not (self._has_place(limits.in_flight) or limits.halted.is_set()):
                self._changed.wait(LOOK)
            self.places[place] = math.inf
        try:
            yield place
        finally:
            with self._changed:
                del self.places[place]
                self._changed.notify_all()

    @contextmanager
    def attempt(self, place: object, limits: Limits) -> Iterator[None]:
        """Wait until the server has room, then send the request of this place in the block."""
        with self._changed:
            while not (self._has_room(place) or limits.halted.is_set()):
                self._changed.wait(LOOK)
            self._under_way += 1
        try:
            yield
        except lm15.LM15Error as error:
            if is_refused_for_now(error):
                with self._changed:
                    self.places[place] = max(1, self._under_way - 1)
                    self._free_at = max(self._free_at, monotonic() + (error.retry_after or 0.0))
            raise
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _has_place(self, most: int) -> bool:
        refused = sum(room < math.inf for room in self.places.values())
        return len(self.places) < most and refused in (0, len(self.places))

    def _has_room(self, place: object) -> bool:
        return self._under_way < self.places[place] and self._free_at <= monotonic()


def is_refused_for_now(error: lm15.LM15Error) -> bool:
    """Return whether the server may take the same request later: it is busy, asks to wait, or is unreachable."""
    is_busy = isinstance(error, lm15.RateLimitError | lm15.TransportError) or error.status in BUSY
    return (is_busy or error.retry_after is not None) and worth_another(error)


_servers: dict[str, InFlight] = {}


def in_flight_at(server: str) -> InFlight:
    """Return the requests of this process to a server, shared by all stages and runs."""
    return _servers.setdefault(server, InFlight(server))
