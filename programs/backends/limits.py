"""Limits on calls and USD of a run, and the switch that stops further requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Condition, Event

import dspy


class LimitReached(dspy.LMError):
    """The next request would exceed a limit of the user's and was not sent. Ends a run; finished results are kept."""


class Halted(dspy.LMError):
    """The run was interrupted before the request was sent."""


@dataclass
class Limits:
    """The limits and sums of one run, shared by all its threads.

    ``max_calls`` counts requests sent, failed ones included; ``max_usd`` needs a price in the configuration. A request
    is admitted only if its highest possible price still fits beside those of all requests in flight; its real price is
    recorded when it is known. A request that does not fit yet waits while requests in flight may turn out cheaper.
    """

    max_calls: int | None = None
    max_usd: float | None = None
    calls: int = 0
    usd: float = 0.0
    halted: Event = field(default_factory=Event, repr=False)
    _reserved: float = 0.0
    _under_way: int = 0
    _changed: Condition = field(default_factory=Condition, repr=False)

    def admit(self, highest_usd: float | None) -> None:
        """Wait for room for one request of at most this price. Raises LimitReached or Halted when there is none."""
        with self._changed:
            while True:
                if self.halted.is_set():
                    raise Halted("interrupted")
                if self.max_calls is not None and self.calls >= self.max_calls:
                    raise LimitReached(f"the limit of {self.max_calls} calls is reached{self._spent()}")
                if self.max_usd is None:
                    break
                if highest_usd is None:
                    raise LimitReached("a limit in USD needs a price in the configuration: set price for every stage")
                if self.usd + self._reserved + highest_usd <= self.max_usd:
                    break
                if not self._under_way:
                    raise LimitReached(
                        f"the next call may take {highest_usd:.4f} USD and would exceed the limit of "
                        f"{self.max_usd:g} USD{self._spent()}"
                    )
                self._changed.wait(1.0)
            self.calls += 1
            self._under_way += 1
            self._reserved += highest_usd or 0.0

    def settle(self, highest_usd: float | None, usd: float | None) -> None:
        """Record that an admitted request has ended, with its real price."""
        with self._changed:
            self._under_way -= 1
            self._reserved -= highest_usd or 0.0
            self.usd += usd or 0.0
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until the run is halted."""
        self.halted.wait(seconds)

    def halt(self) -> None:
        """Admit no further request and end every wait; requests in flight are finished."""
        self.halted.set()
        with self._changed:
            self._changed.notify_all()

    def _spent(self) -> str:
        return f" ({self.calls} calls, {self.usd:.4f} USD spent)" if self.usd else ""


_limits: ContextVar[Limits | None] = ContextVar("agenticiqa_limits", default=None)


@contextmanager
def within(limits: Limits) -> Iterator[Limits]:
    """Requests inside count towards these limits."""
    token = _limits.set(limits)
    try:
        yield limits
    finally:
        _limits.reset(token)


def set_current(limits: Limits) -> None:
    """Apply these limits from here on in this context, such as one that is about to be run in a thread."""
    _limits.set(limits)


def current() -> Limits:
    """The limits of the run; unlimited ones where none were set."""
    return _limits.get() or Limits()
