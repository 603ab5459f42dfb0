"""A labeled question, and of its result what tuning needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenticiqa.signatures.types import ExecutorOutput


@dataclass(frozen=True)
class Question:
    """One labeled image with the question about it.

    Either ``target``, the opinion score on 1 to 5 of a question for a rating, or ``answer``, the letter of the right
    option of a question that lists options. ``content`` is the scene, as ``datasets.LabeledImage`` has it.
    """

    image: Path
    query: str
    content: str
    reference: Path | None = None
    target: float | None = None
    answer: str | None = None


@dataclass(frozen=True)
class ModelCall:
    """One accepted answer of a predictor: its inputs, images as ``dspy.Image``, and its output fields."""

    predictor: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """Of one result what tuning needs. No image is in it, but in ``calls``.

    ``expectation`` is the expected level, ``sum(level * p)`` over the model's own probabilities, in [1, 5]; ``None``
    where the model gave none. ``fused`` is the program's score. ``final_answer`` and ``reasoning`` are the result's, as
    text. ``answered`` names the predictors whose answers were
    used, ``asked`` the stages that were asked. ``failure`` says why there is no score.
    """

    expectation: float | None = None
    fused: float | None = None
    final_answer: str | None = None
    reasoning: str = ""
    evidence: ExecutorOutput | None = None
    rejected_answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failure: str | None = None
    answered: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    calls: tuple[ModelCall, ...] = ()
