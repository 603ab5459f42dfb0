"""The limits of a run: how many requests it may send, what they may cost, and how many may be in flight."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Condition, Event

import dspy

IN_FLIGHT = 64  # requests to a server at a time, unless ``--workers`` or its provider sets another number


class LimitReached(dspy.LMError):
    """Raised in place of a request that would exceed the user's limit. Ends a run; finished results are kept."""


class Halted(dspy.LMError):
    """Raised when the run was interrupted before the request was sent."""


@dataclass
class Limits:
    """The limits and sums of one run, shared by all its threads.

    ``max_calls`` limits the requests sent, including failed ones; ``max_usd`` needs a price in the configuration. A
    request is admitted only if its highest possible price fits in addition to those of all requests in flight. Its real
    price is recorded when it is known. A request that does not fit waits while requests in flight may turn out cheaper.
    ``in_flight`` limits the requests of this process to one server at a time; ``None`` leaves it to the server's
    provider (``backends.in_flight``). ``halted`` is set when no further request may be sent, ``aborted`` also when no
    answer under way is waited for.
    """

    max_calls: int | None = None
    max_usd: float | None = None
    in_flight: int | None = None
    calls: int = 0
    usd: float = 0.0
    halted: Event = field(default_factory=Event, repr=False)
    aborted: Event = field(default_factory=Event, repr=False)
    _reserved: float = 0.0
    _under_way: int = 0
    _changed: Condition = field(default_factory=Condition, repr=False)

    def admit(self, highest_usd: float | None, server: str = "") -> None:
        """Wait until the limits admit a request of at most this price. Raises LimitReached or Halted if they never do.

        ``server`` is where the request is sent; it has no effect here.
        """
        with self._changed:
            while not self.admit_now(highest_usd):
                if not self._under_way:
                    raise LimitReached(
                        f"the next call may cost {highest_usd:.4f} USD and would exceed the limit of "
                        f"{self.max_usd:g} USD{self._spent()}"
                    )
                self._changed.wait(1.0)

    def admit_now(self, highest_usd: float | None) -> bool:
        """Return whether the limits admit a request of at most this price now; if so, count it.

        Raises LimitReached or Halted if they never will.
        """
        with self._changed:
            if self.halted.is_set():
                raise Halted("interrupted")
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise LimitReached(f"the limit of {self.max_calls} calls is reached{self._spent()}")
            if self.max_usd is not None:
                if highest_usd is None:
                    raise LimitReached("a limit in USD needs a price in the configuration: set price for every stage")
                if self.usd + self._reserved + highest_usd > self.max_usd:
                    return False
            self.calls += 1
            self._under_way += 1
            self._reserved += highest_usd or 0.0
            return True

    def count(self) -> None:
        """Count a request that was sent without being admitted."""
        with self._changed:
            self.calls += 1

    def go_on(self, calls: int, usd: float, under_way: Iterable[float | None]) -> None:
        """Add the requests and cost of an earlier process, and the highest possible prices of requests under way."""
        with self._changed:
            self.calls += calls
            self.usd += usd
            for highest in under_way:
                self._under_way += 1
                self._reserved += highest or 0.0

    def settle(self, highest_usd: float | None, usd: float | None, server: str = "") -> None:
        """Record that an admitted request has ended, with its real price."""
        with self._changed:
            self._under_way -= 1
            self._reserved -= highest_usd or 0.0
            self.usd += usd or 0.0
            self._changed.notify_all()

    def halt(self) -> None:
        """Admit no further request and end every wait; requests in flight are finished."""
        self.halted.set()
        with self._changed:
            self._changed.notify_all()

    def abort(self) -> None:
        """Do as ``halt``, and also give up the requests in flight."""
        self.aborted.set()
        self.halt()

    def _spent(self) -> str:
        return f" ({self.calls} calls, {self.usd:.4f} USD spent)" if self.usd else ""
