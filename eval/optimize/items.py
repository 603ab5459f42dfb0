"""The labeled questions that prompts are tuned on, their split by scene, and the stored part of an answer."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from agenticiqa.eval.datasets import LabeledImage, MosScale, mos_scale
from agenticiqa.eval.names import Stage
from agenticiqa.eval.questions.task import Item, asked_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.interval import backend_shown
from agenticiqa.programs.images.files import digest, sha256_of
from agenticiqa.signatures.lexicon import fold_distortion
from agenticiqa.signatures.types import GLOBAL, UNABLE, ExecutorOutput
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

PREDICTORS: dict[Stage, str] = {  # prefixes of the tuned predictors' names; "all" means those that a rating uses
    "scoring": "summarizer.score.",
    "answering": "summarizer.answer.",
    "detection": "executor.detect.",
}
ENOUGH_COMPARED = 200  # questions; up to this number, the comparison also has those that the search did not use
LABELS: dict[Stage, str] = {
    "scoring": "images with MOS",
    "all": "images with MOS",
    "answering": "questions with options and answers",
    "detection": "images with a named distortion",
}


@dataclass(frozen=True)
class TuningQuestion:
    """One labeled image with a question and its true answer, which is one of the last three fields.

    ``target`` is the MOS on 1 to 5 for a rating question, ``answer`` the letter of the right option in ``options``,
    and ``distortion`` the category of the image's only distortion. ``content``
    is the scene, as in ``datasets.LabeledImage``.
    """

    image: Path
    query: str
    content: str
    reference: Path | None = None
    options: tuple[str, ...] = ()
    target: float | None = None
    answer: str | None = None
    distortion: str | None = None

    @property
    def key(self) -> str:
        """Return a digest of the files' bytes and the question."""
        reference = sha256_of(self.reference) if self.reference else None
        return digest([sha256_of(self.image), reference, self.query, list(self.options)])


@dataclass(frozen=True)
class Assessed:
    """The fields of one result that tuning needs, in plain JSON types.

    ``expectation`` is the expected level, ``sum(level * p)`` over the model's own ``probabilities``, in [1, 5], or
    ``None`` without them. ``fused`` is the program's score, ``tool`` the mean of the ``tools`` and ``tool_error`` their
    stated deviation. ``found``, the distortions of the whole image, is ``None`` if there are none.
    ``evidence`` describes the findings and failures in words. ``rejected`` counts rejected answers. ``answered`` names
    the predictors with accepted answers, ``asked`` the stages that sent requests, and ``calls`` holds the texts of the
    last call by predictor. ``failure`` is the reason for a missing answer.
    """

    expectation: float | None = None
    probabilities: dict[str, float] = field(default_factory=dict)
    fused: float | None = None
    tool: float | None = None
    tools: tuple[str, ...] = ()
    tool_error: float | None = None
    model: str = ""
    final_answer: str | None = None
    reasoning: str = ""
    found: tuple[str, ...] | None = None
    evidence: str = ""
    rejected: int = 0
    failure: str | None = None
    answered: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    calls: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Assessed":
        """Return the result that ``asdict`` converted."""
        known: dict[str, Any] = {entry.name: row[entry.name] for entry in fields(cls) if entry.name in row}
        tuples: dict[str, Any] = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
        return cls(**(known | tuples))


def options_of(question: TuningQuestion) -> dict[str, str] | None:
    """Return the options by letter, or ``None`` without options."""
    return {chr(ord("A") + place): text for place, text in enumerate(question.options)} or None


def rating(label: LabeledImage, scale: MosScale) -> TuningQuestion:
    """Return a label as a rating question."""
    return TuningQuestion(label.image, DEFAULT_QUERY, label.content, label.reference, target=scale.to_1_5(label.mos))


def questions_of(
    labels: Sequence[LabeledImage | Item | TuningQuestion], stage: Stage, scale: MosScale | None = None
) -> list[TuningQuestion]:
    """Return the questions that a stage is tuned on. Raises UserError if the labels have none."""
    images = [label for label in labels if isinstance(label, LabeledImage)]
    items = [label for label in labels if isinstance(label, Item)]
    questions = [label for label in labels if isinstance(label, TuningQuestion)]
    if stage in ("scoring", "all") and images:
        scale = scale or mos_scale([label.mos for label in images])
        questions += [rating(label, scale) for label in images]
    elif stage == "detection":
        for label in images:
            category = fold_distortion(label.distortion) if label.distortion else None
            if category:
                about = (label.image, DEFAULT_QUERY, label.content, label.reference)
                questions.append(TuningQuestion(*about, distortion=category))
    elif stage == "answering":
        for choice in asked_of(items):
            if choice.truth:
                item, options = choice.item, tuple(choice.options.values())
                questions.append(
                    TuningQuestion(item.image, item.query, item.content, item.reference, options, answer=choice.truth)
                )
    if not questions:
        raise UserError(f"--stage {stage} needs {LABELS[stage]}, but the labels have none")
    return questions


def split_by_content(
    questions: Sequence[TuningQuestion], *, held_out: float, seed: int
) -> tuple[list[TuningQuestion], list[TuningQuestion]]:
    """Return the questions to tune on and the held-out ones, a share ``held_out`` of all scenes, at least one each.

    Raises UserError for a share outside (0, 1) and for fewer than two scenes.
    """
    if not 0 < held_out < 1:
        raise UserError(f"the held-out share must be between 0 and 1, got {held_out:g}")
    contents = sorted({question.content for question in questions})
    if len(contents) < 2:
        raise UserError(
            f"the labels have {len(contents)} scenes (column content or reference); at least 2 are needed, one of them "
            "held out"
        )
    random.Random(seed).shuffle(contents)
    reserved = set(contents[: min(len(contents) - 1, max(1, round(held_out * len(contents))))])
    tuned = [question for question in questions if question.content not in reserved]
    return tuned, [question for question in questions if question.content in reserved]


def unused(pool: Sequence[TuningQuestion], used: Collection[int], held_out: int) -> list[TuningQuestion]:
    """Return random questions of scenes that a search did not use, as many as the comparison needs.

    The search used the places ``used`` of ``pool``; the comparison already has the ``held_out`` questions.
    """
    contents = {pool[place].content for place in used}
    others = [question for question in pool if question.content not in contents]
    return random.Random(0).sample(others, min(len(others), max(0, ENOUGH_COMPARED - held_out)))


def assessed_of(result: Any, calls: dict[str, dict[str, dict[str, str]]]) -> Assessed:
    """Convert a result of the program and the texts of its calls for tuning."""
    summary, evidence = result.summarizer_result, result.executor_evidence
    stated = summary.probability_source not in (None, "uniform")
    probabilities = dict(summary.quality_probs or {}) if stated else {}
    whole = (evidence.distortion_set or {}).get(GLOBAL)
    scorer = result.answered_by.get("scoring")
    return Assessed(
        expectation=sum(int(level) * p for level, p in probabilities.items()) or None,
        probabilities=probabilities,
        fused=result.quality_score,
        tool=evidence.overall_mean,
        tools=evidence.overall_tools,
        tool_error=evidence.overall_spread,
        model=backend_shown(scorer[-1]) if scorer else "",
        final_answer=str(result.final_answer),
        reasoning=result.quality_reasoning,
        found=None if whole is None else tuple(map(str, whole)),
        evidence=" ".join(_on_evidence(evidence, result.rejected_answers)),
        failure=result.quality_reasoning if result.final_answer == UNABLE else None,
        rejected=sum(len(reasons) for reasons in result.rejected_answers.values()),
        answered=tuple(calls),
        asked=tuple(result.usage_by_stage),
        calls=calls,
    )


def _on_evidence(evidence: ExecutorOutput, rejected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Describe the evidence, the failures and the rejected answers in words."""
    if evidence.distortion_analysis:
        distortions = [
            f"{finding.type} in {region} ({finding.severity})"
            for region, rows in evidence.distortion_analysis.items()
            for finding in rows
        ]
        yield f"Distortions found: {', '.join(distortions) or 'none'}."
    for part, why in evidence.failures.items():
        yield f"{part} gave no result: {why}."
    for stage, reasons in rejected.items():
        yield f"Rejected answers of {stage}: {'; '.join(reasons)}."
