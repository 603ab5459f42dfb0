"""The context of a request: the run with its limits, the assessment with its usage, and the attempt at a question.

It is kept in DSPy's settings, because DSPy's own threads inherit them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
from dspy import lm15
from dspy.utils.callback import BaseCallback

from agenticiqa.programs.backends.answer_cache import CachedCall, is_cached
from agenticiqa.programs.backends.capabilities import ModelFeatures
from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.usage import RequestFeatures, Spent, Usage, billed_output

KINDS = ("prompt", "completion", "total")  # kinds of tokens, as DSPy names them


@dataclass
class Turn:
    """One attempt at a question of a stage, with its usage and reply.

    ``images`` are the images in the prompt, by their addresses in it (see ``held_images``), ``features`` the requested
    features. ``schema`` is the schema that the server is asked to enforce, ``known`` what is known of its features.
    ``spent`` is the usage of the attempt. ``model`` gave the last reply, ``text`` is that reply as received,
    ``thoughts`` is the reasoning sent with it, ``logprobs`` has the log-probabilities of its tokens, ``cache`` is
    whether DSPy may keep it, ``error`` is why there is none. ``asked`` are the calls of models, ``answered`` has what a
    configured model reported about each response.
    """

    stage: str = ""
    attempt: int = 0
    attempts: int = 0
    images: Mapping[str, Any] = field(default_factory=dict, repr=False)
    features: RequestFeatures = field(default_factory=RequestFeatures)
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    known: ModelFeatures | None = field(default=None, repr=False)
    spent: Spent = field(default_factory=Spent)
    model: str = ""
    text: str = ""
    thoughts: str = ""
    logprobs: Any = field(default=None, repr=False)
    cache: bool = False
    error: BaseException | None = None
    asked: list[CachedCall] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> dict[str, Any]:
        """The fields that identify the attempt; empty outside of a question."""
        return {"stage": self.stage, "attempt": self.attempt, "attempts": self.attempts} if self.stage else {}


@dataclass(frozen=True)
class RunContext:
    """The run, the assessment and the attempt that a request belongs to.

    ``limits`` are those of the run. If its requests do not go directly to a server, ``send`` answers the request of a
    model, and ``assess`` assesses images with such requests (see ``provider_batches.rounds``). ``usage`` is that of
    the assessment, and ``history`` is whether DSPy's history of its calls is kept. ``turn`` is the attempt.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    send: Callable[[Any, lm15.Request], lm15.Response] | None = None
    assess: Callable[..., Any] | None = None
    usage: Usage = field(default_factory=Usage)
    history: bool = False
    turn: Turn = field(default_factory=Turn)


def current() -> RunContext:
    """Return the current context; an unused one, without limits, if none was set."""
    return dspy.settings.get("agenticiqa") or RunContext()


@contextmanager
def within(
    limits: RunLimits,
    send: Callable[[Any, lm15.Request], lm15.Response] | None = None,
    assess: Callable[..., Any] | None = None,
) -> Iterator[RunLimits]:
    """Count all requests to models in the block, including those of DSPy's optimizers and their threads.

    ``limits.own`` has the sums so far. Beyond a limit, a model of the configuration raises LimitReached instead of
    sending. Requests of other models are counted, and refused only in a question of a stage. ``send`` and ``assess``
    are those of a ``RunContext``.
    """
    outer, callbacks = current(), dspy.settings.callbacks or []
    if not any(isinstance(callback, OtherModels) for callback in callbacks):
        callbacks = [*callbacks, OtherModels()]
    inner = replace(outer, limits=limits, send=send or outer.send, assess=assess or outer.assess)
    with dspy.context(agenticiqa=inner, callbacks=callbacks):
        yield limits


@contextmanager
def recorded_usage(
    *, history: bool = False, only_questions: bool = False, limits: Limits | None = None
) -> Iterator[Usage]:
    """Record the usage of all calls in the block, which also need to fit into ``limits``.

    With ``history``, DSPy's history of calls is kept.

    ``only_questions`` says that all requests are those of a ``CheckedPredict``, which counts them itself. DSPy calls a
    callback for each module, which takes a fifth of the processor time of a request, so then it gets none.
    """
    usage, outer, callbacks = Usage(), current(), dspy.settings.callbacks or []
    if only_questions:
        callbacks = [callback for callback in callbacks if type(callback) is not OtherModels]
    inner = replace(outer, usage=usage, history=history, limits=outer.limits.beside(limits))
    with dspy.context(agenticiqa=inner, callbacks=callbacks):
        yield usage


@contextmanager
def asking(stage: str, attempt: int = 1, attempts: int = 1) -> Iterator[Turn]:
    """Begin one attempt at a question of a stage; ``spend`` adds to its usage, which the assessment gets at the end.

    An attempt that succeeds without a request counts as answered from the cache.
    """
    turn, outer = Turn(stage, attempt, attempts), current()
    try:
        with dspy.context(agenticiqa=replace(outer, turn=turn)):
            yield turn
        if not turn.spent.calls:
            turn.spent.cached = 1
    finally:
        outer.usage.add(stage, turn.spent)


@contextmanager
def spending_of(lm: dspy.BaseLM) -> Iterator[None]:
    """Record the usage of a model outside the configuration: time, and the requests and tokens that DSPy reports.

    DSPy does not report whether an answer came from its cache. With a cache, an answer without usage counts as cached.
    """
    with dspy.track_usage() as used:
        began = time.perf_counter()
        try:
            yield
        finally:
            entries = [entry for of_model in used.usage_data.values() for entry in of_model]
            calls = len(entries) or int(not getattr(lm, "cache", False))
            seconds = time.perf_counter() - began if calls else 0.0
            counts = [[_count(entry.get(f"{kind}_tokens")) for kind in KINDS] for entry in entries]
            read, written = sum(count[0] for count in counts), sum(billed_output(*count) for count in counts)
            spend(Spent(calls, input_tokens=read, output_tokens=written, seconds=seconds))


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def spend(more: Spent) -> None:
    """Add the usage of a request to the current attempt."""
    current().turn.spent.add(more)


class NotSent(BaseException):
    """Raised in place of a request for this reason. DSPy only logs an ``Exception`` of a callback, and goes on."""

    def __init__(self, reason: LimitReached | Halted) -> None:
        super().__init__(str(reason))
        self.reason = reason


class OtherModels(BaseCallback):
    """DSPy's callback that counts the requests of models outside the configuration, and refuses those of a question."""

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called before a request to a model or its cache."""
        engine = getattr(instance, "engine", None)
        if not getattr(engine, "counts_requests", False) and not is_cached(CachedCall(instance, inputs)):
            run = current()
            if not run.turn.stage:
                run.limits.count()
                return
            try:
                run.limits.admit(None)
            except (LimitReached, Halted) as reason:
                raise NotSent(reason) from reason
            run.limits.settle(None, None)
