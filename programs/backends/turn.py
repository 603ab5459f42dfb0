"""One attempt at a question: the images shown, the usage, and the reply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import dspy

COUNTS = ("calls", "cached", "retries", "input_tokens", "output_tokens")


@dataclass
class Spent:
    """The usage of one stage.

    ``calls`` counts requests sent, ``cached`` answers from the cache, ``retries`` requests sent again after a server or
    network failure (also counted in ``calls``). ``output_tokens`` include hidden reasoning. ``usd`` is ``None`` if the
    configuration has no price. A request with an unknown price (no answer, or an answer without usage) counts with its
    highest possible price. ``seconds`` is the time of the requests. ``cut_off`` is whether the last answer ended at
    the token limit.
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
        for name in (*COUNTS, "seconds"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.cut_off = more.cut_off
        if more.usd is not None:
            self.usd = (self.usd or 0.0) + more.usd

    def to_json(self) -> dict[str, Any]:
        """Return the usage as in a result's JSON."""
        counts = {name: getattr(self, name) for name in COUNTS}
        return {**counts, "usd": None if self.usd is None else round(self.usd, 6), "seconds": round(self.seconds, 3)}


class CachedCall(NamedTuple):
    """A call of a DSPy model: the model and its inputs (``prompt``, ``messages``, ``kwargs``)."""

    lm: dspy.BaseLM
    inputs: Mapping[str, Any]


@dataclass
class Turn:
    """One attempt at a question of a stage, with its usage and reply.

    ``images`` are the images in the prompt, by their addresses in it (see ``held_images``). ``spent`` is the usage of
    the attempt. ``model`` gave the last reply, ``text`` is that reply as received, ``thoughts`` is the reasoning sent
    with it, ``cache`` is whether DSPy may keep it, ``error`` is why there is none. ``asked`` are the calls of models,
    ``answered`` has what a configured model reported about each response.
    """

    stage: str = ""
    attempt: int = 0
    attempts: int = 0
    images: Mapping[str, Any] = field(default_factory=dict, repr=False)
    spent: Spent = field(default_factory=Spent)
    model: str = ""
    text: str = ""
    thoughts: str = ""
    cache: bool = False
    error: BaseException | None = None
    asked: list[CachedCall] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> dict[str, Any]:
        """The fields that identify the attempt; empty outside of a question."""
        return {"stage": self.stage, "attempt": self.attempt, "attempts": self.attempts} if self.stage else {}


def current_turn() -> Turn:
    """Return the attempt in progress; an empty one outside of a question."""
    return dspy.settings.get("agenticiqa_turn") or Turn()


def spend(more: Spent) -> None:
    """Add the usage of a request to the current attempt."""
    current_turn().spent.add(more)
