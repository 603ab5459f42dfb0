"""How many requests a server is sent at a time, and that all of them wait when it asks one of them to wait.

A request holds its place until it is answered or given up. One that the server refused for now is sent again after its
wait, once fewer are under way than when it was refused; until then only one new request is sent at a time, as more
would take the room that it waits for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from dspy import lm15

from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.backends.retries import worth_another

BUSY = frozenset({429, 503, 529})
LOOK = 0.2  # seconds after which a request that waits looks at the clock, and whether its run was halted


@dataclass(eq=False)
class Slot:
    """What a request holds; ``room`` is what it waits for: fewer requests under way than that."""

    limits: Limits
    room: int | None = None


class InFlight:
    """The requests of this process to one server. Thread-safe."""

    def __init__(self, server: str = "") -> None:
        self.server = server
        self.places: set[Slot] = set()  # that are taken
        self._under_way = 0
        self._free_at = 0.0  # by ``monotonic``: nothing is sent before
        self._changed = Condition()

    @contextmanager
    def place(self, limits: Limits) -> Iterator[Slot]:
        """Wait for one of ``limits.in_flight`` places, and hold it for a request and its retries."""
        place = Slot(limits)
        with self._changed:
            while not (self._has_place(limits.in_flight) or limits.halted.is_set()):
                self._changed.wait(LOOK)
            self.places.add(place)
        try:
            yield place
        finally:
            with self._changed:
                self.places.discard(place)
                self._changed.notify_all()

    @contextmanager
    def attempt(self, place: Slot) -> Iterator[None]:
        """Send the request of this place inside, once the server has room for it."""
        with self._changed:
            while not (self._has_room(place) or place.limits.halted.is_set()):
                self._changed.wait(LOOK)
            self._under_way += 1
        try:
            yield
        except lm15.LM15Error as error:
            with self._changed:
                if is_refused_for_now(error):
                    place.room = max(1, self._under_way - 1)
                    self._free_at = max(self._free_at, monotonic() + (error.retry_after or 0.0))
            raise
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _has_place(self, most: int) -> bool:
        refused = sum(place.room is not None for place in self.places)
        return len(self.places) < most and refused in (0, len(self.places))

    def _has_room(self, place: Slot) -> bool:
        return (place.room is None or self._under_way < place.room) and self._free_at <= monotonic()


def is_refused_for_now(error: lm15.LM15Error) -> bool:
    """Whether the server may take the same request later: it is busy, asks to wait, or cannot be connected to."""
    is_busy = isinstance(error, lm15.RateLimitError | lm15.TransportError) or error.status in BUSY
    return (is_busy or error.retry_after is not None) and worth_another(error)


_servers: dict[str, InFlight] = {}


def in_flight_at(server: str) -> InFlight:
    """The requests of this process to a server, the same for every stage and run that asks it."""
    return _servers.setdefault(server, InFlight(server))
