"""What the questions to models took, by stage: calls, answers from the cache, tokens, money, time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

COUNTS = ("calls", "cached", "retries", "input_tokens", "output_tokens")


@dataclass
class Spent:
    """What one stage took.

    ``calls`` are requests that were sent, ``cached`` answers that needed none, ``retries`` requests sent again after a
    failure of the server or network (counted in ``calls``). ``usd`` is ``None`` where the configuration has no price.
    ``seconds`` are those of requests. ``cut_off``: the last answer ended at the limit of tokens.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    seconds: float = 0.0
    cut_off: bool = False

    def add(self, more: "Spent") -> None:
        """Sum up."""
        self.calls += more.calls
        self.cached += more.cached
        self.retries += more.retries
        self.input_tokens += more.input_tokens
        self.output_tokens += more.output_tokens
        self.seconds += more.seconds
        self.cut_off = more.cut_off
        if more.usd is not None:
            self.usd = (self.usd or 0.0) + more.usd

    def to_json(self) -> dict[str, Any]:
        """As it stands in a result."""
        return {
            "calls": self.calls,
            "cached": self.cached,
            "retries": self.retries,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usd": None if self.usd is None else round(self.usd, 6),
            "seconds": round(self.seconds, 3),
        }


@dataclass
class Ledger:
    """The sums of one assessment, by stage; stages that run side by side may write at once."""

    stages: dict[str, Spent] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, stage: str, spent: Spent) -> None:
        """Add to a stage."""
        with self._lock:
            self.stages.setdefault(stage, Spent()).add(spent)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """As it stands in a result."""
        return {stage: spent.to_json() for stage, spent in self.stages.items()}


def total(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The stages of a result's ``usage_by_stage`` together, but for the seconds, which overlap."""
    summed = {count: sum(stage[count] for stage in stages.values()) for count in COUNTS}
    prices = [stage["usd"] for stage in stages.values() if stage["usd"] is not None]
    return {**summed, "usd": sum(prices) if prices else None}


_ledger: ContextVar[Ledger | None] = ContextVar("agenticiqa_ledger", default=None)
_asking: ContextVar[tuple[str, Spent] | None] = ContextVar("agenticiqa_asking", default=None)


@contextmanager
def keeping() -> Iterator[Ledger]:
    """Whatever is asked inside is written into this ledger."""
    ledger = Ledger()
    token = _ledger.set(ledger)
    try:
        yield ledger
    finally:
        _ledger.reset(token)


@contextmanager
def asking(stage: str) -> Iterator[Spent]:
    """One question of a stage: ``spend`` inside it adds to what is given, and it is entered at the end.

    A question that ends well without anything sent was answered from the cache.
    """
    spent = Spent()
    token = _asking.set((stage, spent))
    try:
        yield spent
        if not spent.calls:
            spent.cached = 1
    finally:
        _asking.reset(token)
        if ledger := _ledger.get():
            ledger.add(stage, spent)


def spend(more: Spent) -> None:
    """Enter what a request took under the question that is being asked."""
    if asked := _asking.get():
        asked[1].add(more)
