"""The result of an assessment, and the record of its run: timings and rejected answers."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from textwrap import shorten
from typing import Any, Literal, TypeVar

import dspy
from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core.core_schema import CoreSchema, is_instance_schema, plain_serializer_function_ser_schema

from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.backends.usage import by_model
from agenticiqa.programs.errors import ended_unanswered
from agenticiqa.programs.events import assessing
from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.images import ImageSource, LoadedImage, name_of
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.page.findings import NONE, caveats_of, distortions_of, found_in, main_distortion_of
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.result_row import AssessedRow
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.protocols import StageResult
from agenticiqa.programs.tools.statistics.effective_size import effective_side
from agenticiqa.programs.tools.statistics.jpeg_quality import quality_in
from agenticiqa.programs.tools.statistics.parts import luma_parts
from agenticiqa.signatures.types import (
    PARSING_FAILED,
    ExecutorOutput,
    LevelKey,
    MassFrom,
    PlannerOutput,
    ProbabilitySource,
    QueryType,
    SummarizerOutput,
)

R = TypeVar("R", bound=StageResult)

# Fields of the summarizer's result that are fields of a result, too.
OF_SUMMARY = (
    "score_interval",
    "score_without_model",
    "disagreement",
    "quality_probs",
    "probability_source",
    "probability_mass",
    "probability_mass_from",
)
NAMED = 3  # distortions in a repr


@dataclass
class RunRecord:
    """The wall time of each stage of a run, and why answers of models were rejected.

    ``seconds`` has the time of each stage's last run, ``timings_ms`` the sum over all iterations in milliseconds.
    ``rejected_answers`` has, for each stage that rejected model answers, one reason per answer, in order.
    """

    timings_ms: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rejected_answers: dict[str, list[str]] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Record the wall time of the stage that runs inside; a stage that fails is not recorded."""
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started
        self.timings_ms[name] = round(self.timings_ms.get(name, 0.0) + self.seconds[name] * 1000, 1)

    def noted(self, result: R) -> R:
        """Record the rejected answers of a stage's result, and return the result."""
        for stage, reasons in result.rejected_answers.items():
            if reasons:
                self.rejected_answers.setdefault(stage, []).extend(reasons)
        return result


class Assessment(dspy.Prediction):
    """What ``AgenticIQA`` returns: a ``dspy.Prediction`` with these fields, a short repr, and a table in notebooks.

    Each key of ``to_dict`` is also a field. ``score`` and other fields that follow from the rest are stored once, so a
    copy with another ``quality_score`` keeps them (see ``add_derived_fields``).

    Attributes:
        final_answer: A float in [1, 5] (5 is best) for a question about quality; text for any other question, or for a
            rating on another scale ("50 of 100").
        quality_score: The score in [1, 5], higher is better, or ``None`` without a rating.
        score: The same as ``quality_score``.
        quality_level: The name of the level nearest to the score, or ``None`` without a score.
        main_distortion: The category of the most severe distortion, "none" if there is none, or ``None`` if no
            distortion was looked for.
        severity: Its severity, in the same way.
        distortions: Each distortion that is there, the most severe first: its region (the damaged part if it is local,
            "Global" for the whole image), its category, and its strength, 1 (slight) to 4 (extreme).
        caveats: Why the score is uncertain, in words; empty if it is not.
        quality_reasoning: The reason for the answer.
        query_type: The kind of question.
        options: The options by letter, or ``{}``.
        plan: The last plan.
        executor_evidence: The distortions, tool scores and failures that the answer is based on.
        summarizer_result: The answer as the summarizer gave it.
        iteration_count: The number of replans.
        replan_history: The reason for each replan.
        outside_training: Why the image is unlike the photos that the learned scorer was trained on; empty if it is not.
        rejected_answers: By stage, why answers of models were rejected.
        is_unscored: Whether there is neither a score nor an answer because the model gave no usable answer.
        usage: The tokens by model.
        usage_by_stage: The calls, tokens and USD by stage (see ``backends.usage``).
        answered_by: The models that answered each stage, including cached answers.
        answer_notes: By stage, the parts of a model's answers that were dropped or read as something else.
        capabilities: The features used of each model (see ``capabilities.RequestFeatures``).
        timings_ms: The wall time of each stage in milliseconds.
        image: The loaded image, not a copy.
        image_sha256: The SHA-256 of the image.
        reference: The loaded reference, or ``None``.
        reference_sha256: The SHA-256 of the reference, or ``None`` without one.
        width: The width of the image in pixels, upright.
        height: Its height.
        jpeg_quality: The quality of a JPEG by its header, 1 to 100; ``None`` for another file.
        effective_side: The pixels of the longer side that the detail needs; ``None`` for an image that is too small.
        sent: How image and reference were sent to models, as file or as pixels; ``None`` without a model.
        reference_check: How image and reference overlap, or ``None``.
        query: The question.
        backend: The backends of the stages, as configurations name them.
        version: The version of this package.
        score_interval: The ends between which the MOS of 80 and of 95 of 100 such images lies, or ``None``.
        score_without_model: The score of the tools alone, or ``None`` where no model or no tool took part.
        disagreement: How many levels model and tools differ, if by so much that one of them must be wrong; else
            ``None``.
        quality_probs: The probabilities of the levels "1" to "5", or ``None``.
        probability_source: Where these probabilities come from.
        probability_mass: The share of the level token's probability that fell on levels, if tokens were read.
        probability_mass_from: Among which tokens: "free text" and "before grammar" for all of them, "after grammar" for
            those that the schema allows, where the share is always 1.
    """

    final_answer: float | str
    quality_score: float | None
    quality_reasoning: str
    query_type: QueryType
    options: dict[str, str]
    plan: PlannerOutput
    executor_evidence: ExecutorOutput
    summarizer_result: SummarizerOutput
    iteration_count: int
    replan_history: list[str]
    outside_training: list[str]
    rejected_answers: dict[str, list[str]]
    usage: dict[str, dict[str, Any]]
    usage_by_stage: dict[str, dict[str, Any]]
    answered_by: dict[str, list[str]]
    answer_notes: dict[str, list[str]]
    capabilities: dict[str, dict[str, Any]]
    timings_ms: dict[str, float]
    image: LoadedImage
    reference: LoadedImage | None
    reference_check: ReferenceCheck | None
    query: str
    backend: str
    version: str
    score: float | None
    quality_level: str | None
    main_distortion: str | None
    severity: str | None
    distortions: list[dict[str, Any]]
    caveats: list[str]
    score_interval: dict[Literal["80", "95"], tuple[float, float]] | None
    score_without_model: float | None
    disagreement: float | None
    quality_probs: dict[LevelKey, float] | None
    probability_source: ProbabilitySource | None
    probability_mass: float | None
    probability_mass_from: MassFrom | None
    image_sha256: str
    reference_sha256: str | None
    width: int
    height: int
    jpeg_quality: int | None
    effective_side: int | None
    is_unscored: bool
    sent: dict[str, str] | None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let a pydantic model have a result as a field, and an endpoint of FastAPI return one: as ``to_dict``."""
        shown = handler.generate_schema(dict[str, Any])
        return is_instance_schema(
            cls, serialization=plain_serializer_function_ser_schema(cls.to_dict, return_schema=shown)
        )

    def __float__(self) -> float:
        """Return the score, 1 to 5, so that results can be compared and sorted. Raises ValueError without a score."""
        score = self.get("quality_score")
        if score is None:
            raise ValueError(f"{self!r} has no score; only a question that asks for a rating has one")
        return float(score)

    def to_dict(self) -> dict[str, Any]:
        """Convert the result to plain JSON types, as ``agenticiqa assess --json`` prints it.

        Returns:
            The documented keys and their values.
        """
        return {name: _plain(getattr(self, name)) for name in AssessedRow.model_fields}

    def toDict(self) -> dict[str, Any]:
        """Convert all fields to plain JSON types, for DSPy; prefer ``to_dict``.

        Returns:
            The fields by name; images become their names.
        """
        return {name: _plain(value) for name, value in self.items(include_dspy=True)}

    def __repr__(self) -> str:
        """Return one line: the image, the score or the answer, and the main distortions."""
        image, evidence = self.get("image"), self.get("executor_evidence")
        distortions = [f"{item.severity} {item.type}" for _, item in distortions_of(evidence) if item.severity != NONE]
        parts = [_headline(self), ", ".join(dict.fromkeys(distortions[:NAMED]))]
        name = f" of {image.source}" if isinstance(image, LoadedImage) else ""
        return f"<Assessment{name}: {'; '.join(filter(None, parts))}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a thumbnail, the score as a bar, distortions and tools. It loads no resources."""
        from agenticiqa.programs.page.notebook import to_html  # a late import: it needs jinja, which one photo does not

        return to_html(self)


@contextmanager
def bookkeeping(
    image: ImageSource, *, keep_history: bool, only_questions: bool, limits: Limits
) -> Iterator[Callable[[Assessment], Assessment]]:
    """Record model usage and tag log records with this image; the yielded function adds the usage to the result.

    The options are those of ``recorded_usage``.
    """
    with (
        assessing(name_of(image)) as assessed,
        dspy.track_usage() as tokens,
        recorded_usage(history=keep_history, only_questions=only_questions, limits=limits) as usage,
    ):

        def finish(result: Assessment) -> Assessment:
            result.usage, result.usage_by_stage = by_model(tokens.get_total_tokens()), usage.to_json()
            result.answered_by, result.answer_notes = usage.answered_by, usage.answer_notes
            result.capabilities = usage.capabilities()
            add_derived_fields(result)
            progress.done(result, assessed.seconds)
            return result

        yield finish


def add_derived_fields(result: Assessment) -> None:
    """Store what follows from the other fields, so that DSPy finds it under its name, too."""
    result.score = result.quality_score
    result.quality_level = None if result.score is None else level_name(result.score)
    for name in OF_SUMMARY:
        setattr(result, name, getattr(result.summarizer_result, name))
    result.main_distortion, result.severity = main_distortion_of(result.executor_evidence)
    result.distortions = found_in(result.executor_evidence)
    remark = result.reference_check.sentence if result.reference_check else ""
    result.caveats = caveats_of(result.outside_training, result.disagreement, remark)
    result.image_sha256 = result.image.sha256
    result.reference_sha256 = result.reference.sha256 if result.reference else None
    result.width, result.height = result.image.size
    result.jpeg_quality = quality_in(result.image.jpeg_tables)
    result.effective_side = effective_side(luma_parts(result.image), max(result.image.size))
    result.is_unscored = is_unscored(dict(result.items()))
    result.sent = sent_forms(result)


def sent_forms(result: Assessment) -> dict[str, str] | None:
    """Return how image and reference were sent to models, as file or as pixels; ``None`` without a model."""
    if not result.capabilities:
        return None
    forms = [[f"image/{form}" for form in used["image_formats"] or ()] for used in result.capabilities.values()]
    images = {"image": result.image, "reference": result.reference}
    return {
        name: " or ".join(dict.fromkeys((image.sent_as(form) if form else image).sent for form in forms))
        for name, image in images.items()
        if image
    }


def is_unscored(row: Mapping[str, Any]) -> bool:
    """Return ``Assessment.is_unscored`` for a result as JSON.

    Also true if a score was requested, no planning attempt was accepted, and the answer is therefore in words.
    """
    if row.get("quality_reasoning") == PARSING_FAILED:
        return True
    asks = row.get("query_type")
    if asks == QueryType.EXPLANATION and ended_unanswered((row.get("rejected_answers") or {}).get("planner", ())):
        asks = detect_query_type(str(row.get("query")))
    return asks == QueryType.SCORING and row.get("quality_score") is None


def _headline(result: Assessment) -> str:
    """Return the score with its level, or the answer, shortened."""
    score = result.get("quality_score")
    if score is not None:
        return f"{score:.2f} of 5 ({level_name(score)})"
    answer = result.get("final_answer")
    return "" if answer is None else repr(shorten(str(answer), 80, placeholder="..."))


def _plain(value: Any) -> Any:
    """Return a field as plain JSON types; values of unknown types are unchanged."""
    if isinstance(value, LoadedImage):
        return value.source
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dspy.Example):
        return value.toDict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
