"""Limit the simultaneous requests to a server, and wait before a request is sent again.

A request holds a slot until it is answered or fails. If the server asks one request to wait, all of them wait. A
request that the server refused temporarily is sent again after its wait, once fewer requests are under way than when it
was refused. Until then, new requests are sent one at a time, because more of them would take the capacity that the
refused request waits for.

If requests time out while others are under way, the server probably answers fewer at a time than it gets. From then
on, it gets half as many. For a server that answers many at a time this takes two time-outs without an answer between
them, because a single one says little.
"""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from dspy import lm15

from agenticiqa.programs.backends.limits import IN_FLIGHT, Limits
from agenticiqa.programs.backends.retries import is_retryable, log_loading

logger = logging.getLogger(__name__)

BUSY = frozenset({429, 503, 529})
CHECK_SECONDS = 0.2  # seconds after which a waiting request checks whether its run was halted


@dataclass(eq=False)
class Slot:
    """The place of one request and its retries.

    The request is sent when fewer than ``capacity`` requests are under way, and not before the time ``not_before`` by
    ``monotonic``. ``others`` is the largest number of other requests that were under way at the same time.
    """

    capacity: float = math.inf
    not_before: float = 0.0
    others: int = 0


class InFlight:
    """The requests of this process to one server. Thread-safe.

    ``at_a_time`` is how many of them the server takes, unless the limits of a run set another number. ``answers`` is
    whether the server has answered, and has not been waited for in vain since. ``most`` is how many requests it gets at
    a time since several of them timed out.
    """

    def __init__(self, server: str = "", at_a_time: int | None = None) -> None:
        self.server, self.at_a_time = server, at_a_time or IN_FLIGHT
        self._tolerated = 0 if at_a_time else 1  # time-outs without an answer between them
        self._timed_out = 0  # time-outs since the last answer
        self.slots: set[Slot] = set()
        self.answers = False
        self._is_awaited = False  # whether its requests wait until it has loaded its model
        self.most = math.inf  # requests at a time, since one of several timed out
        self._under_way: set[Slot] = set()
        self._not_before = 0.0  # time, by ``monotonic``, before which nothing is sent
        self._changed = Condition()

    @contextmanager
    def slot(self, limits: Limits) -> Iterator[Slot]:
        """Wait for one of ``limits.in_flight`` slots, and hold it for a request and its retries; yield the slot."""
        slot, most = Slot(), limits.in_flight or self.at_a_time
        with self._changed:
            while not (self._has_slot(most) or limits.halted.is_set()):
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
            self._under_way.add(slot)
            slot.others = 0
            for sent in self._under_way:
                sent.others = max(sent.others, len(self._under_way) - 1)
        try:
            yield
        except lm15.LM15Error as error:
            with self._changed:
                if is_refused_for_now(error):
                    slot.capacity = max(1, len(self._under_way) - 1)
                    self._not_before = max(self._not_before, monotonic() + (error.retry_after or 0.0))
                elif isinstance(error, lm15.TimeoutError) and slot.others:
                    self._timed_out += 1
                    if self._timed_out > self._tolerated:
                        self._send_fewer((slot.others + 1) // 2)
            raise
        finally:
            with self._changed:
                self._under_way.discard(slot)
                self._changed.notify_all()

    def answered(self) -> None:
        """Record that the server has answered a request."""
        self.answers, self._is_awaited, self._timed_out = True, False, 0

    def awaited(self, name: str, error: lm15.LM15Error) -> None:
        """Log that requests wait for the server to load its model, for the first of them; ``name`` is the model."""
        with self._changed:
            is_first, self._is_awaited = not self._is_awaited, True
        if is_first:
            log_loading(name, error)

    def gave_up(self) -> None:
        """Record that the server was waited for in vain, so that further requests wait for a shorter time."""
        self.answers = self._is_awaited = False

    def _send_fewer(self, most: int) -> None:
        """Send at most this many requests at a time from now on; requests that time out together count once."""
        if most < self.most:
            self.most = most
            logger.warning(
                "%s: requests wait for each other; from now on at most %d at a time (set it with --workers)",
                self.server,
                most,
                extra={"event": "fewer", "server": self.server, "at_a_time": most},
            )

    def _has_slot(self, most: int) -> bool:
        refused = sum(slot.capacity < math.inf for slot in self.slots)
        return len(self.slots) < most and refused in (0, len(self.slots))

    def _seconds_left(self, slot: Slot) -> float:
        """Return the seconds until the request may be sent; infinite as long as too many others are under way."""
        if len(self._under_way) >= min(slot.capacity, self.most):
            return math.inf
        return max(0.0, max(slot.not_before, self._not_before) - monotonic())


def is_refused_for_now(error: lm15.LM15Error) -> bool:
    """Return whether the server may take the same request later: it is busy, asks to wait, or is unreachable."""
    is_busy = isinstance(error, lm15.RateLimitError | lm15.TransportError) or error.status in BUSY
    return (is_busy or error.retry_after is not None) and is_retryable(error)


_servers: dict[str, InFlight] = {}


def in_flight_at(server: str, at_a_time: int | None = None) -> InFlight:
    """Return the requests of this process to a server, shared by all stages and runs."""
    return _servers.setdefault(server, InFlight(server, at_a_time))
