"""The limits of a run: how many requests it may send, what they may cost, and how many may be in flight."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Event
from typing import Any

import dspy

from agenticiqa.programs.errors import UserError, WrongArgument

IN_FLIGHT = 64  # requests to a server at a time, unless ``--workers`` or its provider sets another number
NEEDS_PRICE = "a limit in USD needs a price in the configuration: set price for every stage"

_changed = Condition()  # one for all limits, so that a request is admitted by several of them at once or by none


class LimitReached(dspy.LMError):
    """Raised in place of a request that would exceed the user's limit. Ends a run; finished results are kept.

    Attributes:
        results: What was assessed before: the ``Evaluation`` of ``evaluate``, or the DataFrame of ``to_frame``.
    """

    results: Any = None


class Halted(dspy.LMError):
    """Raised when the run was interrupted before the request was sent."""


@dataclass(kw_only=True, eq=False)
class Limits:
    """The most requests to models and the most USD, and what was sent and spent so far.

    A request counts when it is sent, also if it fails; an answer from the cache does not count. Threads, runs and
    copies of a program share the object. Another process would count for itself, so pickling a limit is an error.

    Attributes:
        max_usd: The most USD; each model needs a price. By default there is no limit.
        max_calls: The most requests.
        calls: The requests so far.
        usd: Their cost in USD, as far as prices are known.
    """

    max_usd: float | None = None
    max_calls: int | None = None
    calls: int = field(default=0, init=False)
    usd: float = field(default=0.0, init=False)
    _reserved: float = field(default=0.0, init=False, repr=False)
    _under_way: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_usd", "max_calls"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
                raise WrongArgument(f"{name}={value!r}: give a number of at least 0, or None for no limit")

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self.max_usd is not None or self.max_calls is not None

    def affords(self, calls: float, usd: float) -> bool:
        """Return whether more calls fit.

        Args:
            calls: Their number.
            usd: Their cost.

        Returns:
            Whether neither limit would be exceeded.
        """
        return (self.max_calls is None or self.calls + calls <= self.max_calls) and (
            self.max_usd is None or self.usd + usd <= self.max_usd
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Limits":
        return self  # DSPy copies programs

    def __reduce__(self) -> tuple[type["Limits"], tuple[()]]:
        if self.is_set:
            raise UserError(
                "a program with limits cannot be sent to another process, where its calls would not be counted here: "
                "make a program with a share of the limits in each process, or use threads"
            )
        return Limits, ()

    def _admits(self, highest_usd: float | None) -> bool:
        """Return whether a request of at most this price fits now. Raises LimitReached if it never will."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise LimitReached(f"the limit of {self.max_calls} calls is reached{self._spent()}")
        if self.max_usd is None:
            return True
        if highest_usd is None:
            raise LimitReached(NEEDS_PRICE)
        if self.usd + self._reserved + highest_usd <= self.max_usd:
            return True
        if not self._under_way:
            raise LimitReached(
                f"the next call may cost {highest_usd:.4f} USD and would exceed the limit of "
                f"{self.max_usd:g} USD{self._spent()}"
            )
        return False

    def _begin(self, highest_usd: float | None) -> None:
        self.calls += 1
        self._under_way += 1
        self._reserved += highest_usd or 0.0

    def _end(self, highest_usd: float | None, usd: float | None) -> None:
        self._under_way -= 1
        self._reserved -= highest_usd or 0.0
        self.usd += usd or 0.0

    def _spent(self) -> str:
        return f" ({self.calls} calls, {self.usd:.4f} USD spent)" if self.usd else ""


@dataclass
class RunLimits:
    """What limits the requests of one run, shared by all its threads, and whether it sends any more.

    ``own`` has the limits and the sums of the run, ``others`` are those of programs and calls in it. A request is
    admitted only if its highest possible price fits into each of them, in addition to those of all requests in flight.
    Its real price is recorded when it is known. A request that does not fit waits while requests in flight may turn out
    cheaper. ``in_flight`` limits the requests of this process to one server at a time; ``None`` leaves it to the
    server's provider (``backends.in_flight``). ``halted`` is set when no further request may be sent, ``aborted`` also
    when no answer under way is waited for.
    """

    own: Limits = field(default_factory=Limits)
    in_flight: int | None = None
    others: Sequence[Limits] = ()
    halted: Event = field(default_factory=Event, repr=False)
    aborted: Event = field(default_factory=Event, repr=False)

    @property
    def all(self) -> Sequence[Limits]:
        """The limits that each request must fit into."""
        return (self.own, *self.others)

    def beside(self, limits: Limits | None) -> "RunLimits":
        """Return the limits of the same run with one more, unless it has it already."""
        if limits is None or any(limits is each for each in self.all):
            return self
        return replace(self, others=(*self.others, limits))

    def admit(self, highest_usd: float | None, server: str = "") -> None:
        """Wait until the limits admit a request of at most this price. Raises LimitReached or Halted if they never do.

        ``server`` is where the request is sent; it has no effect here.
        """
        with _changed:
            while not self.admit_now(highest_usd):
                _changed.wait(1.0)

    def admit_now(self, highest_usd: float | None) -> bool:
        """Return whether the limits admit a request of at most this price now; if so, count it.

        Raises LimitReached or Halted if they never will.
        """
        with _changed:
            if self.halted.is_set():
                raise Halted("interrupted")
            if not all(each._admits(highest_usd) for each in self.all):
                return False
            for each in self.all:
                each._begin(highest_usd)
            return True

    def count(self) -> None:
        """Count a request that was sent without being admitted."""
        with _changed:
            for each in self.all:
                each.calls += 1

    def go_on(self, calls: int, usd: float, under_way: Iterable[float | None]) -> None:
        """Add the requests and cost of an earlier process, and the highest possible prices of requests under way."""
        with _changed:
            for highest in under_way:
                self.own._begin(highest)
                self.own.calls -= 1
            self.own.calls += calls
            self.own.usd += usd

    def settle(self, highest_usd: float | None, usd: float | None, server: str = "") -> None:
        """Record that an admitted request has ended, with its real price."""
        with _changed:
            for each in self.all:
                each._end(highest_usd, usd)
            _changed.notify_all()

    def halt(self) -> None:
        """Admit no further request and end every wait; requests in flight are finished."""
        self.halted.set()
        with _changed:
            _changed.notify_all()

    def abort(self) -> None:
        """Do as ``halt``, and also give up the requests in flight."""
        self.aborted.set()
        self.halt()
