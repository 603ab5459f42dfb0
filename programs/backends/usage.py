"""The usage of models by stage: calls, cached answers, tokens, money, time, and the features that were requested."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from agenticiqa.programs.backends.choice import without_place
from agenticiqa.programs.backends.providers import Form, TokenLimit

COUNTS = ("calls", "cached", "retries", "input_tokens", "output_tokens")


@dataclass(frozen=True)
class RequestFeatures:
    """The features of a model that a question requests.

    ``form`` is how JSON is requested (json_schema, json_object or off), ``logprobs`` the number of alternatives per
    token (0: none), ``image_formats`` the formats that are sent unconverted, ``token_limit`` the parameter that limits
    the tokens of an answer (``None`` for a model that the caller gave to DSPy, which chooses it). ``form`` is ``None``
    with a DSPy adapter or a response format of the caller. ``omitted`` has the parameters of sampling that the server
    refused. ``per_request`` is whether the schema is made for the request, ``retried_with`` the sampling of an attempt
    after a rejected answer.
    """

    form: Form | None = None
    logprobs: int | None = None
    image_formats: tuple[str, ...] | None = None
    token_limit: TokenLimit | None = None
    omitted: tuple[str, ...] = ()
    per_request: bool = False
    retried_with: tuple[tuple[str, float], ...] = ()


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


@dataclass
class Usage:
    """The usage of one assessment by stage, the models that answered, and the features requested. Thread-safe.

    ``answered_by`` has the models by stage, ``answer_notes`` the notes about their answers by stage, and ``features``
    the features requested from each model.
    """

    stages: dict[str, Spent] = field(default_factory=dict)
    answered_by: dict[str, list[str]] = field(default_factory=dict)
    answer_notes: dict[str, list[str]] = field(default_factory=dict)
    features: dict[str, list[RequestFeatures]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, stage: str, spent: Spent) -> None:
        """Add usage to a stage."""
        with self._lock:
            self.stages.setdefault(stage, Spent()).add(spent)

    def note_answer(self, stage: str, model: str, features: RequestFeatures) -> None:
        """Record that this model or its cached answer answered a question, and which features were requested."""
        with self._lock:
            models, requested = self.answered_by.setdefault(stage, []), self.features.setdefault(model, [])
            if model not in models:
                models.append(model)
            if features not in requested:
                requested.append(features)

    def capabilities(self) -> dict[str, dict[str, Any]]:
        """Return the features requested from each model, as in a result's JSON; one model may have several forms.

        ``omitted`` and ``retried_with`` are there only if a parameter was left out, or an attempt was retried.
        """
        return {model: _summed(requested) for model, requested in self.features.items()}

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


def _summed(requested: Sequence[RequestFeatures]) -> dict[str, Any]:
    """Return the features of all requests to one model as plain JSON types."""
    formats = requested[-1].image_formats
    sampled = dict.fromkeys(features.retried_with for features in requested if features.retried_with)
    more = {
        "omitted": list(dict.fromkeys(name for features in requested for name in features.omitted)),
        "retried_with": [dict(sampling) for sampling in sampled],
    }
    return {
        "structured_outputs": list(dict.fromkeys(features.form for features in requested if features.form)),
        "logprobs": max((f.logprobs for f in requested if f.logprobs is not None), default=None),
        "image_formats": None if formats is None else list(formats),
        **{name: listed for name, listed in more.items() if listed},
    }


def total(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum over a result's ``usage_by_stage``, without seconds, because stages overlap in time."""
    summed = {count: sum(stage[count] for stage in stages.values()) for count in COUNTS}
    prices = [stage["usd"] for stage in stages.values() if stage["usd"] is not None]
    return {**summed, "usd": sum(prices) if prices else None}


def billed_output(read: int, written: int, total: int) -> int:
    """Return the tokens billed as output, including hidden reasoning.

    xAI, Gemini and some gateways include reasoning only in ``total``, not in the output tokens. Zero means that a
    count is not reported.
    """
    return max(written, total - read) if read else written


def by_model(usage: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Return the tokens that DSPy counted, by model name without the server's address."""
    return {without_place(name): dict(tokens) for name, tokens in usage.items()}
