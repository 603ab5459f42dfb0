"""Limit the simultaneous requests to a server, and wait before a request is sent again.

A request holds a slot until it is answered or fails. If the server asks one request to wait, all of them wait. A
request that the server refused temporarily is sent again after its wait, once fewer requests are under way than when it
was refused. Until then, new requests are sent one at a time, because more of them would take the capacity that the
refused request waits for.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from dspy import lm15

from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.retries import is_retryable

BUSY = frozenset({429, 503, 529})
CHECK_SECONDS = 0.2  # seconds after which a waiting request checks whether its run was halted


@dataclass(eq=False)
class Slot:
    """The place of one request and its retries.

    The request is sent when fewer than ``capacity`` requests are under way, and not before the time ``not_before`` by
    ``monotonic``.
    """

    capacity: float = math.inf
    not_before: float = 0.0


class InFlight:
    """The requests of this process to one server. Thread-safe."""

    def __init__(self, server: str = "") -> None:
        self.server = server
        self.slots: set[Slot] = set()
        self._under_way = 0
        self._not_before = 0.0  # time, by ``monotonic``, before which nothing is sent
        self._changed = Condition()

    @contextmanager
    def slot(self, limits: Limits) -> Iterator[Slot]:
        """Wait for one of ``limits.in_flight`` slots, and hold it for a request and its retries; yield the slot."""
        slot = Slot()
        with self._changed:
            while not (self._has_slot(limits.in_flight) or limits.halted.is_set()):
                self._changed.wait(CHECK_SECONDS)
            self.slots.add(slot)
        try:
            yield slot
        finally:
            with self._changed:
                self.slots.remove(slot)
                self._changed.notify_all()

    @contextmanager
    def sending(self, slot: Slot, limits: Limits) -> Iterator[None]:
        """Wait until the request of this slot may be sent, or the run is halted; the block sends it."""
        with self._changed:
            while (seconds := self._seconds_left(slot)) > 0 and not limits.halted.is_set():
                self._changed.wait(min(seconds, CHECK_SECONDS))
            self._under_way += 1
        try:
            yield
        except lm15.LM15Error as error:
            if is_refused_for_now(error):
                with self._changed:
                    slot.capacity = max(1, self._under_way - 1)
                    self._not_before = max(self._not_before, monotonic() + (error.retry_after or 0.0))
            raise
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _has_slot(self, most: int) -> bool:
        refused = sum(slot.capacity < math.inf for slot in self.slots)
        return len(self.slots) < most and refused in (0, len(self.slots))

    def _seconds_left(self, slot: Slot) -> float:
        """Return the seconds until the request may be sent; infinite as long as too many others are under way."""
        if self._under_way >= slot.capacity:
            return math.inf
        return max(0.0, max(slot.not_before, self._not_before) - monotonic())


def is_refused_for_now(error: lm15.LM15Error) -> bool:
    """Return whether the server may take the same request later: it is busy, asks to wait, or is unreachable."""
    is_busy = isinstance(error, lm15.RateLimitError | lm15.TransportError) or error.status in BUSY
    return (is_busy or error.retry_after is not None) and is_retryable(error)


_servers: dict[str, InFlight] = {}


def in_flight_at(server: str) -> InFlight:
    """Return the requests of this process to a server, shared by all stages and runs."""
    return _servers.setdefault(server, InFlight(server))
