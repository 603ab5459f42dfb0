"""Send the requests of this process to a server: how many at a time, and which failed ones are sent again.

A request holds a slot until it is answered or fails. If the server asks one request to wait, all of them wait. A
request that the server refused temporarily is sent again after its wait, once fewer requests are under way than when it
was refused. Until then, new requests are sent one at a time, because more of them would take the capacity that the
refused request waits for.

If requests time out while others are under way, the server probably answers fewer at a time than it gets. From then
on, it gets half as many. For a server that answers many at a time this takes two time-outs without an answer between
them, because a single one says little.

==================================  ==================================================================================
failure                             action
==================================  ==================================================================================
503 "Loading model", and a refused  retry after 1, 2, 4 and then every 5 seconds, 20 times: about 90 seconds, in which
connection at a server that         most models are loaded. One line says what is waited for. If it was in vain, further
answered before                     requests get the retries of the next row, until the server answers
429, 5xx, 408, 409, 421, 425,       retry after the time that the server asks for (``retry-after``, at most a minute),
connection                          else after 1, 2, 4, ... seconds (at most 30), plus up to a quarter at random, so
                                    that calls that failed together are not retried together
no answer in time                   retry once; as the row above if the server had other requests of this process at
                                    the same time, of which it then gets half as many
a longer ``retry-after``            fail: the error says how long the server asks to wait
everything else                     fail: the same request would fail again (key, model, schema, certificate, context)
==================================  ==================================================================================

With ``max_retries: 0`` nothing is retried. ``backends.failures`` says which failure is which.
"""

import logging
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from dspy import lm15

from agenticiqa.programs.backends.failures import (
    is_loading,
    is_refused_connection,
    is_refused_for_now,
    is_retryable,
    reason_of,
)
from agenticiqa.programs.backends.limits import IN_FLIGHT, RunLimits
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

CHECK_SECONDS = 0.2  # seconds after which a waiting request checks whether its run was halted
LONGEST_WAIT = 30.0  # seconds
TIMEOUTS = 2  # attempts that may time out
LOADING_RETRIES = 20
LONGEST_LOADING_WAIT = 5.0  # seconds
LOADING_SECONDS = 90  # seconds: about the sum of these waits


@dataclass(eq=False)
class Slot:
    """The place of one request and its retries.

    The request is sent when fewer than ``capacity`` requests are under way, and not before the time ``not_before`` by
    ``monotonic``. ``others`` is the largest number of other requests that were under way at the same time. ``attempt``
    counts its attempts, and ``loading`` those that failed because the server was loading its model.
    """

    capacity: float = math.inf
    not_before: float = 0.0
    others: int = 0
    attempt: int = 1
    loading: int = 0


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

    def send(
        self, once: Callable[[Slot], lm15.Response], limits: RunLimits, *, most_retries: int = 0, model: str = ""
    ) -> lm15.Response:
        """Call ``once``, which sends the request, until it is answered; ``model`` is its name in the log.

        Raises lm15's errors, LimitReached or Halted.
        """
        with self.slot(limits) as slot:
            while True:
                try:
                    with self.sending(slot, limits):
                        return once(slot)
                except lm15.LM15Error as error:
                    loading = is_loading(error) or (self.answers and is_refused_connection(error))
                    seconds = next_wait(slot, error, most_retries, loading=loading)
                    if seconds is None:
                        if loading:  # in vain, so further requests wait for a shorter time
                            self.answers = self._is_awaited = False
                        raise
                    if not limits.halted.is_set():
                        if loading:
                            self._log_loading(model, error)
                        else:
                            log_retry(model, slot.attempt, error, seconds)
                    slot.attempt += 1
                    slot.not_before = monotonic() + seconds

    def answered(self) -> None:
        """Record that the server has answered a request."""
        self.answers, self._is_awaited, self._timed_out = True, False, 0

    @contextmanager
    def slot(self, limits: RunLimits) -> Iterator[Slot]:
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
    def sending(self, slot: Slot, limits: RunLimits) -> Iterator[None]:
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

    def _send_fewer(self, most: int) -> None:
        """Send at most this many requests at a time from now on; requests that time out together count once."""
        if most < self.most:
            self.most = most
            logger.warning(
                "%s: requests wait for each other; from now on at most %d at a time (set it with --workers)",
                self.server,
                most,
                extra=event("fewer", server=self.server, at_a_time=most),
            )

    def _has_slot(self, most: int) -> bool:
        refused = sum(slot.capacity < math.inf for slot in self.slots)
        return len(self.slots) < most and refused in (0, len(self.slots))

    def _seconds_left(self, slot: Slot) -> float:
        """Return the seconds until the request may be sent; infinite as long as too many others are under way."""
        if len(self._under_way) >= min(slot.capacity, self.most):
            return math.inf
        return max(0.0, max(slot.not_before, self._not_before) - monotonic())

    def _log_loading(self, model: str, error: lm15.LM15Error) -> None:
        """Log once for all requests that they wait for the server to load its model."""
        with self._changed:
            is_first, self._is_awaited = not self._is_awaited, True
        if is_first:
            what = "the server is loading its model" if is_loading(error) else "the server no longer answers"
            values = (model, what, reason_of(error), LOADING_SECONDS)
            fields = event("loading", server=model)
            logger.warning("%s: %s (%s); waiting up to %d s for it", *values, extra=fields)


def next_wait(slot: Slot, error: lm15.LM15Error, most_retries: int, *, loading: bool = False) -> float | None:
    """Return the seconds until the attempt that follows a failed one; ``None`` if there is none.

    ``loading`` is whether the server is expected to answer when its model is loaded. A request that timed out beside
    others was possibly only queued behind them.
    """
    if loading and most_retries:
        slot.loading += 1
        seconds = min(seconds_to_wait(slot.loading, error), LONGEST_LOADING_WAIT)
        return seconds if slot.loading <= LOADING_RETRIES else None
    attempt = slot.attempt - slot.loading
    seconds = seconds_to_wait(attempt, error)
    is_slow = isinstance(error, lm15.TimeoutError) and not slot.others
    most = min(most_retries, TIMEOUTS - 1) if is_slow else most_retries
    return seconds if attempt <= most and is_retryable(error) else None


def seconds_to_wait(attempt: int, error: lm15.LM15Error) -> float:
    """Return the seconds until the attempt that follows number ``attempt``."""
    doubled = min(2.0 ** (attempt - 1), LONGEST_WAIT)
    return (error.retry_after or doubled) * random.uniform(1, 1.25)


def log_retry(model: str, attempt: int, error: lm15.LM15Error, seconds: float) -> None:
    """Log the wait after attempt number ``attempt``: the model, the failure, and the seconds until the next attempt."""
    fields = event("retry", server=model, wait_s=round(seconds, 2))
    values = (model, reason_of(error), attempt + 1, seconds)
    logger.warning("%s: %s; attempt %d follows in %.1f s", *values, extra=fields)


_servers: dict[str, InFlight] = {}


def in_flight_at(server: str, at_a_time: int | None = None) -> InFlight:
    """Return the requests of this process to a server, shared by all stages and runs."""
    return _servers.setdefault(server, InFlight(server, at_a_time))
