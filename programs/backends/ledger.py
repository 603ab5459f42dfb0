"""Usage of models by stage: calls, cached answers, tokens, money, time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

COUNTS = ("calls", "cached", "retries", "input_tokens", "output_tokens")


@dataclass
class Spent:
    """The usage of one stage.

    ``calls`` counts requests sent, ``cached`` answers from the cache, ``retries`` requests sent again after a server or
    network failure (also counted in ``calls``). ``usd`` is ``None`` where the configuration has no price.
    ``seconds`` is the time of the requests. ``cut_off``: the last answer ended at the token limit.
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
        """Add other usage to this one."""
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
        """As in a result's JSON."""
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
    """The usage of one assessment, by stage. Thread-safe."""

    stages: dict[str, Spent] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, stage: str, spent: Spent) -> None:
        """Add usage to a stage."""
        with self._lock:
            self.stages.setdefault(stage, Spent()).add(spent)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """As in a result's JSON."""
        return {stage: spent.to_json() for stage, spent in self.stages.items()}


def total(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sum over a result's ``usage_by_stage``, without seconds, since stages overlap."""
    summed = {count: sum(stage[count] for stage in stages.values()) for count in COUNTS}
    prices = [stage["usd"] for stage in stages.values() if stage["usd"] is not None]
    return {**summed, "usd": sum(prices) if prices else None}


_ledger: ContextVar[Ledger | None] = ContextVar("agenticiqa_ledger", default=None)
_asking: ContextVar[tuple[str, Spent] | None] = ContextVar("agenticiqa_asking", default=None)


@contextmanager
def keeping() -> Iterator[Ledger]:
    """Record the usage of all calls inside in a new ledger."""
    ledger = Ledger()
    token = _ledger.set(ledger)
    try:
        yield ledger
    finally:
        _ledger.reset(token)


@contextmanager
def asking(stage: str) -> Iterator[Spent]:
    """One question of a stage: ``spend`` inside adds to the usage that is yielded, which is recorded at the end.

    A question that succeeds without a request was answered from the cache.
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
    """Record the usage of a request under the question that is being asked."""
    if asked := _asking.get():
        asked[1].add(more)
