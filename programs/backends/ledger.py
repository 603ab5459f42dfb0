"""Usage of models by stage (calls, cached answers, tokens, money, time), and the limits of a run."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event, Lock
from typing import Any

import dspy
from dspy import lm15
from dspy.utils.callback import BaseCallback

from agenticiqa.programs.backends.answer_cache import is_cached
from agenticiqa.programs.backends.choice import without_place
from agenticiqa.programs.backends.providers import Form
from agenticiqa.programs.backends.turn import COUNTS, CachedCall, Spent, Turn, spend

IN_FLIGHT = 64  # requests to a server at a time, unless ``--workers`` sets another number
KINDS = ("prompt", "completion", "total")  # of tokens, as DSPy names them


@dataclass(frozen=True)
class AskedFor:
    """The capabilities of a model that a question uses: the form of JSON, log-probabilities, image formats.

    ``form`` is how JSON is requested (json_schema, json_object or off), ``logprobs`` the number of alternatives per
    token (0: none), ``image_formats`` the formats that are sent unconverted. All are ``None`` for a model that the
    caller gave to DSPy; ``form`` is also ``None`` with an adapter of the caller.
    """

    form: Form | None = None
    logprobs: int | None = None
    image_formats: tuple[str, ...] | None = None


@dataclass
class Ledger:
    """The usage of one assessment by stage, the models that answered, and the capabilities used. Thread-safe.

    ``answered_by`` has the models by stage, ``asked_for`` the capabilities used of each model. ``history`` is whether
    DSPy's history of calls is kept.
    """

    stages: dict[str, Spent] = field(default_factory=dict)
    answered_by: dict[str, list[str]] = field(default_factory=dict)
    answer_notes: dict[str, list[str]] = field(default_factory=dict)
    asked_for: dict[str, list[AskedFor]] = field(default_factory=dict)
    history: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, stage: str, spent: Spent) -> None:
        """Add usage to a stage."""
        with self._lock:
            self.stages.setdefault(stage, Spent()).add(spent)

    def note_answer(self, stage: str, model: str, asked_for: AskedFor) -> None:
        """Record that this model or its cached answer answered a question, and which capabilities were used."""
        with self._lock:
            models, ways = self.answered_by.setdefault(stage, []), self.asked_for.setdefault(model, [])
            if model not in models:
                models.append(model)
            if asked_for not in ways:
                ways.append(asked_for)

    def capabilities(self) -> dict[str, dict[str, Any]]:
        """Return the capabilities used of each model, as in a result's JSON; one model may have several forms."""
        return {
            model: {
                "structured_outputs": list(dict.fromkeys(each.form for each in ways if each.form)),
                "logprobs": max((each.logprobs for each in ways if each.logprobs is not None), default=None),
                "image_formats": None if ways[0].image_formats is None else list(ways[0].image_formats),
            }
            for model, ways in self.asked_for.items()
        }

    def note_parsing(self, stage: str, notes: Iterable[str]) -> None:
        """Record notes, one sentence each, about parts of an accepted answer that were ignored or interpreted."""
        with self._lock:
            for note in notes:
                known = self.answer_notes.setdefault(stage, [])
                if note not in known:
                    known.append(note)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the usage by stage as in a result's JSON."""
        return {stage: spent.to_json() for stage, spent in self.stages.items()}


def total(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum over a result's ``usage_by_stage``, without seconds, because stages overlap in time."""
    summed = {count: sum(stage[count] for stage in stages.values()) for count in COUNTS}
    prices = [stage["usd"] for stage in stages.values() if stage["usd"] is not None]
    return {**summed, "usd": sum(prices) if prices else None}


# State of a run, an assessment and a question is kept in DSPy's settings, because DSPy's own threads inherit them.
@contextmanager
def keeping(*, history: bool = False) -> Iterator[Ledger]:
    """Record the usage of all calls in the block in a new ledger; with ``history``, keep DSPy's history of calls."""
    ledger = Ledger(history=history)
    with dspy.context(agenticiqa_ledger=ledger):
        yield ledger


def current_ledger() -> Ledger:
    """Return the ledger of the current assessment; outside of one, an unused ledger."""
    return dspy.settings.get("agenticiqa_ledger") or Ledger()


@contextmanager
def asking(stage: str, attempt: int = 1, attempts: int = 1) -> Iterator[Turn]:
    """Begin one attempt at a question of a stage; ``spend`` adds to its usage, which the ledger gets at the end.

    An attempt that succeeds without a request counts as answered from the cache.
    """
    turn = Turn(stage, attempt, attempts)
    try:
        with dspy.context(agenticiqa_turn=turn):
            yield turn
        if not turn.spent.calls:
            turn.spent.cached = 1
    finally:
        current_ledger().add(stage, turn.spent)


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
            asked, written = sum(count[0] for count in counts), sum(billed_output(*count) for count in counts)
            spend(Spent(calls, input_tokens=asked, output_tokens=written, seconds=seconds))


def billed_output(asked: int, written: int, total: int) -> int:
    """Return the tokens billed as output, including hidden reasoning.

    xAI, Gemini and some gateways include reasoning only in ``total``, not in the output tokens. Zero means that a
    count is not reported.
    """
    return max(written, total - asked) if asked else written


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def by_model(usage: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Return the tokens that DSPy counted, by model name without the server's address."""
    return {without_place(name): dict(tokens) for name, tokens in usage.items()}


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
    ``in_flight`` limits the requests of this process to one server at a time (``backends.in_flight``).
    """

    max_calls: int | None = None
    max_usd: float | None = None
    in_flight: int = IN_FLIGHT
    calls: int = 0
    usd: float = 0.0
    halted: Event = field(default_factory=Event, repr=False)
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

    def wait(self, seconds: float) -> None:
        """Wait for this number of seconds, or until the run is halted."""
        self.halted.wait(seconds)

    def halt(self) -> None:
        """Admit no further request and end every wait; requests in flight are finished."""
        self.halted.set()
        with self._changed:
            self._changed.notify_all()

    def _spent(self) -> str:
        return f" ({self.calls} calls, {self.usd:.4f} USD spent)" if self.usd else ""


class OtherModels(BaseCallback):
    """DSPy's callback that counts the requests of models outside the configuration."""

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called before a request to a model or its cache."""
        engine = getattr(instance, "engine", None)
        if not getattr(engine, "counts_requests", False) and not is_cached(CachedCall(instance, inputs)):
            current().count()


@dataclass(frozen=True)
class Run:
    """The limits of a run, and how its requests are sent if they do not go directly to a server.

    ``send`` answers the request of a model instead of its server, and ``assess`` assesses images with such requests
    (see ``provider_batches.rounds``).
    """

    limits: Limits
    send: Callable[[Any, lm15.Request], lm15.Response] | None = None
    assess: Callable[..., Any] | None = None


@contextmanager
def within(
    limits: Limits,
    send: Callable[[Any, lm15.Request], lm15.Response] | None = None,
    assess: Callable[..., Any] | None = None,
) -> Iterator[Limits]:
    """Count all requests to models in the block, including those of DSPy's optimizers and their threads.

    ``limits.calls`` and ``limits.usd`` are the sums so far. Beyond a limit, a model of the configuration raises
    LimitReached instead of sending; requests of other models are counted but not refused. ``send`` and ``assess`` are
    those of a ``Run``.
    """
    run = current_run()
    inner = Run(limits, send or run.send, assess or run.assess)
    callbacks = dspy.settings.callbacks or []
    if not any(isinstance(each, OtherModels) for each in callbacks):
        callbacks = [*callbacks, OtherModels()]
    with dspy.context(agenticiqa_run=inner, callbacks=callbacks):
        yield limits


def current_run() -> Run:
    """Return the current run; a run without limits if none was set."""
    return dspy.settings.get("agenticiqa_run") or Run(Limits())


def current() -> Limits:
    """Return the limits of the current run; no limits if none were set."""
    return current_run().limits
