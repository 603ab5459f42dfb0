"""The data passed between stages: the JSON of the specification, as pydantic models.

Field names and JSON keys are the wire contract. Every model refuses unknown keys, NaN and infinity.
"""

import logging
import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from agenticiqa.signatures.categories import BLURS, OVERALL
from agenticiqa.signatures.lexicon import folded_distortion, folded_severity
from agenticiqa.signatures.vocabulary import (
    DetectableDistortion,
    Distortion,
    ImageKind,
    Severity,
    closest,
    well_formed,
)

logger = logging.getLogger(__name__)

GLOBAL = "Global"
PLAN_WORDS = ("IQA", "Other", "Explicit", "Inferred", "Full-Reference", "No-Reference")
UNABLE = "Unable to determine"
PARSING_FAILED = "VLM output parsing failed"


def _stripped(text: str) -> str:
    text = well_formed(text).strip()
    if not text:
        raise ValueError("must contain at least one character that is not blank")
    return text


def _plan_word(value: Any) -> Any:
    """Return the plan word that matches ``value``, ignoring case and small misspellings, or ``value`` unchanged."""
    return (closest(value, PLAN_WORDS) or value) if isinstance(value, str) else value


Distortions = dict[str, list[Distortion]]  # distortions by region
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom are just outside
Boxes = dict[str, Box | None]  # boxes by region; None where none was found
LevelKey = Literal["1", "2", "3", "4", "5"]
ProbabilitySource = Literal[
    "logprobs",
    "quality_probs",
    "probabilities",
    "percentages",
    "weights",
    "salvaged_probs",
    "salvaged_level",
    "reasoning",
    "uniform",
    "measurements",
    "learned",
]
# The sources that are parts of rejected answers, the best first.
FROM_REJECTED: tuple[ProbabilitySource, ...] = ("salvaged_probs", "salvaged_level", "reasoning", "uniform")
MassFrom = Literal["free text", "before grammar", "after grammar"]
LEVEL_KEYS: tuple[LevelKey, ...] = get_args(LevelKey)
Text = Annotated[str, AfterValidator(_stripped)]
# Texts of a model's answer. The schema of a request limits them, so that no answer runs on; a longer text is accepted.
Name = Annotated[Text, Field(json_schema_extra={"minLength": 1, "maxLength": 60})]
Sentence = Annotated[Text, Field(json_schema_extra={"minLength": 1, "maxLength": 240})]
Reason = Annotated[Text, Field(json_schema_extra={"minLength": 1, "maxLength": 480})]  # up to three sentences
DistortionName = Annotated[Distortion, BeforeValidator(folded_distortion)]
DetectableName = Annotated[DetectableDistortion, BeforeValidator(folded_distortion)]
SeverityName = Annotated[Severity, BeforeValidator(folded_severity)]
PlanQueryType = Annotated[Literal["IQA", "Other"], BeforeValidator(_plan_word)]
DistortionSource = Annotated[Literal["Explicit", "Inferred"], BeforeValidator(_plan_word)]
ReferenceMode = Annotated[Literal["Full-Reference", "No-Reference"], BeforeValidator(_plan_word)]


class Strict(BaseModel):
    """The base of every model here: no unknown keys, no NaN, no infinity."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class QueryType(StrEnum):
    """The form of the answer that a question asks for."""

    SCORING = "scoring"
    MCQ = "mcq"
    EXPLANATION = "explanation"


def unique(items: Iterable[str]) -> list[str]:
    """Return the items in order of first appearance, without repetitions."""
    return list(dict.fromkeys(items))


class PlanFlags(Strict):
    """Which of the Executor's four sub-tasks run."""

    distortion_detection: bool = Field(strict=True)
    distortion_analysis: bool = Field(strict=True)
    tool_selection: bool = Field(strict=True)
    tool_execution: bool = Field(strict=True)

    def any(self) -> bool:
        """Return whether the plan requests any evidence."""
        return self.distortion_detection or self.distortion_analysis or self.tool_selection or self.tool_execution


class PlannerOutput(Strict):
    """The Planner's plan: the kind of question, its regions, and the sub-tasks that run (paper, Appendix A.2)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query_type": "IQA",
                    "query_scope": ["vehicle"],
                    "distortion_source": "Explicit",
                    "distortions": {"vehicle": [BLURS]},
                    "reference_mode": "No-Reference",
                    "required_tool": None,
                    "plan": {
                        "distortion_detection": False,
                        "distortion_analysis": True,
                        "tool_selection": False,
                        "tool_execution": False,
                    },
                }
            ]
        }
    )

    query_type: PlanQueryType
    query_scope: list[Text] | Literal["Global"]
    distortion_source: DistortionSource
    distortions: dict[str, list[DistortionName]] | None
    reference_mode: ReferenceMode
    required_tool: str | list[str] | None
    plan: PlanFlags

    @field_validator("query_scope", mode="before")
    @classmethod
    def _fold_scope(cls, value: Any) -> Any:
        return fold_scope(value)

    @field_validator("distortions")
    @classmethod
    def _distortions_once(cls, value: dict[str, list[Distortion]] | None) -> dict[str, list[Distortion]] | None:
        once = {region: [*dict.fromkeys(names)] for region, names in (value or {}).items() if names}
        return once or None

    @field_validator("required_tool")
    @classmethod
    def _one_tool_is_a_name(cls, value: str | list[str] | None) -> str | list[str] | None:
        names = unique(name for name in ([value] if isinstance(value, str) else value or []) if name.strip())
        return None if not names else names[0] if len(names) == 1 else names

    @property
    def regions(self) -> list[str]:
        """The scope as a list: ``["Global"]`` for the whole image."""
        return [GLOBAL] if isinstance(self.query_scope, str) else self.query_scope

    @property
    def named_distortions(self) -> Distortions:
        """Return the distortions that the question names, by region; those named globally apply to every region."""
        distortions = self.distortions or {}
        return {region: [*(distortions.get(region) or distortions.get(GLOBAL, []))] for region in self.regions}

    @property
    def tools(self) -> list[str]:
        """The tools that the query names; an empty list if it names none."""
        return [self.required_tool] if isinstance(self.required_tool, str) else self.required_tool or []


def fold_scope(value: Any) -> Any:
    """Return ``"Global"`` for ``"global"``, ``["Global"]`` and an empty list, or the distinct regions."""
    if isinstance(value, str):
        return GLOBAL if value.strip().lower() == "global" else [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        regions = unique(item.strip() for item in value if item.strip().lower() != "global")
        return regions or GLOBAL
    return value


class DistortionAnalysis(Strict):
    """One distortion of one region: how bad, and how one can tell.

    ``uncertain`` is whether the analyst could not see it clearly; ``None`` if the answer does not say.
    """

    type: DistortionName
    severity: SeverityName
    explanation: Text
    uncertain: bool | None = Field(default=None, exclude_if=lambda said: said is None)


class DamagedPart(Strict):
    """Where a distortion is that is in a part only: named, in pixels as ToolCall has it, and its share of the area."""

    type: DistortionName
    severity: SeverityName
    place: Text
    box: Box
    share: float = Field(gt=0, le=1)


class AdaptedTo(Strict):
    """The adapter of a score: its name and digest, the number of its labels, and whether this image is one of them."""

    name: Text
    digest: str
    labels: int
    this_one: bool

    def __str__(self) -> str:
        of_it = "; this image is one of them, so its score says little of others" if self.this_one else ""
        return f"adapted to {self.labels} labels ({self.name}, {self.digest[:12]}){of_it}"


class ToolCall(Strict):
    """One run of one tool: what it measured, or why it did not.

    ``raw`` is on the metric's own scale, in ``unit`` if it has one ("dB"), ``calibrated`` on 1..5 (higher is better).
    ``spread`` is the standard deviation, in levels, of the MOS around ``calibrated``. ``weight`` is its
    share of the mean of its region's scores, or of all scores in a plain mean; 0 for a tool that is not part of it.
    ``image_kind`` says whether a tool trained on both photos and AI-generated images recognized one or the other.
    ``adapted`` describes the user's labels that its score was adapted to. ``ms`` is wall time. ``box`` is the measured
    crop, ``[left, top, right, bottom]`` in pixels, or ``None`` for the whole image.
    """

    tool: str
    region: str
    distortion: str
    raw: float | None = None
    unit: str | None = None
    calibrated: float | None = Field(default=None, ge=1, le=5)
    spread: float | None = Field(default=None, gt=0)
    weight: float | None = Field(default=None, ge=0, le=1)
    image_kind: ImageKind | None = None
    adapted: AdaptedTo | None = None
    ms: float = Field(ge=0)
    error: str | None = None
    box: Box | None = None


class ExecutorOutput(Strict):
    """The evidence that the Executor collected. What the plan switched off is ``None``.

    ``quality_scores`` maps region and distortion to the pair of tool and calibrated score, ``{"Global": {"Blurs":
    ["SSIM", 2.6]}}``; a tool that was not run for one distortion stands under ``"Overall"``. ``distortion_set`` is the
    result of the detection; a region for which the question names distortions has those. ``boxes`` has where each named
    region was found, ``None`` for one that was not; what is measured of a small one is a larger crop around it.
    ``measurements`` has the physical quantities behind an offline analysis, ``local_damage`` what is in a part only,
    ``failures`` why a sub-task gave no result, and ``notes`` says what a reader of the scores has to know.
    """

    distortion_set: dict[str, list[DistortionName]] | None = None
    distortion_analysis: dict[str, list[DistortionAnalysis]] | None = None
    selected_tools: dict[str, dict[str, str]] | None = None
    quality_scores: dict[str, dict[str, tuple[str, float]]] | None = None
    tool_log: list[ToolCall] = Field(default_factory=list)
    boxes: Boxes | None = None
    measurements: dict[str, dict[str, float]] | None = None
    local_damage: dict[str, list[DamagedPart]] | None = None
    failures: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    @field_validator("quality_scores")
    @classmethod
    def _scores_on_the_scale(
        cls, value: dict[str, dict[str, tuple[str, float]]] | None
    ) -> dict[str, dict[str, tuple[str, float]]] | None:
        for region, scores in (value or {}).items():
            for distortion, (tool, score) in scores.items():
                if not 1 <= score <= 5:
                    raise ValueError(
                        f"{tool} scores {score} for {region}/{distortion}: calibrated scores lie in [1, 5]"
                    )
        return value

    @property
    def scores(self) -> list[float]:
        """Every calibrated tool score, in order."""
        return [score for scores in (self.quality_scores or {}).values() for _, score in scores.values()]

    @property
    def overall_scores(self) -> list[float]:
        """Return the scores that a rating is based on: for each region, those of the tools with a weight.

        The score of a tool for a single property explains the rating but is not part of it.
        If no tool has a weight, return the scores for overall quality, or all scores if there are none.
        """
        return [rated.score for rated in self._rated]

    @property
    def overall_tools(self) -> tuple[str, ...]:
        """The tools of ``overall_scores`` by name, each once, in alphabetical order."""
        return tuple(sorted({rated.tool for rated in self._rated}))

    @property
    def overall_spread(self) -> float | None:
        """The root mean square of the ``spread`` of the tools of ``overall_scores``; ``None`` if one has none.

        The spread of their mean score is not much smaller, because the errors of tools are correlated.
        """
        known = {(call.region, call.tool): call.spread for call in self.tool_log}
        pairs = [(rated.weight, known.get((rated.region, rated.tool))) for rated in self._rated]
        squares = [weight * spread * spread for weight, spread in pairs if spread is not None]
        return math.sqrt(math.fsum(squares)) if pairs and len(squares) == len(pairs) else None

    @property
    def image_kind(self) -> ImageKind | None:
        """Return the kind of image that the tools of ``overall_scores`` recognized, or ``None``."""
        tools = self.overall_tools
        kinds = [call.image_kind for call in self.tool_log if call.image_kind and call.tool in tools]
        return "generated" if "generated" in kinds else next(iter(kinds), None)

    @property
    def _rated(self) -> list["RatedScore"]:
        stated = {(call.region, call.tool): call.weight for call in self.tool_log}
        ratings = [
            rated
            for region, scores in (self.quality_scores or {}).items()
            for rated in _rated_of(region, scores, {tool: stated.get((region, tool)) for tool, _ in scores.values()})
        ]
        total = math.fsum(rated.weight for rated in ratings)
        return [rated._replace(weight=rated.weight / total) for rated in ratings]

    @property
    def overall_mean(self) -> float | None:
        """The weighted mean of ``overall_scores``, the plain mean if no call has a weight; ``None`` without scores."""
        if not (rated := self._rated):
            return None
        return min(max(math.fsum(row.weight * row.score for row in rated), 1.0), 5.0)

    def is_empty(self) -> bool:
        """Return whether the evidence has neither an analysis nor a score."""
        return not any(self.distortion_analysis.values() if self.distortion_analysis else ()) and not self.scores


class RatedScore(NamedTuple):
    """A score that is part of a rating, and its share of the mean."""

    region: str
    tool: str
    score: float
    weight: float


def _rated_of(region: str, scores: dict[str, tuple[str, float]], stated: dict[str, float | None]) -> list[RatedScore]:
    """Return the scores of one region that a rating is based on, with the stated weights, or 1 if none is stated."""
    if all(weight is None for weight in stated.values()):
        pairs = [pair for key, pair in scores.items() if key.startswith(OVERALL)] or [*scores.values()]
        return [RatedScore(region, tool, score, 1.0) for tool, score in pairs]
    by_tool = dict(scores.values())
    return [RatedScore(region, tool, by_tool[tool], weight) for tool, weight in stated.items() if weight]


class SummarizerOutput(Strict):
    """The answer with its reason.

    ``final_answer`` is a float in [1, 5] when scoring (``quality_score`` is then the same number) and text otherwise;
    for a rating on another scale it is the number on that in words ("50 of 100"), beside ``quality_score`` in [1, 5].
    ``quality_probs`` maps the levels "1".."5" to probabilities. ``probability_source`` says where they came from: those
    in ``FROM_REJECTED`` are incomplete answers of a model. ``probability_mass`` is the share of the level token's
    probability that fell on levels, if tokens were read. ``probability_mass_from`` says among which tokens: all, where
    the server enforced no schema or reports values from before its grammar, or only those that the grammar allows, so
    that it is always 1.
    ``score_interval`` has the ranges that hold the MOS of 80 and 95 of 100 images, ``score_without_model`` the score of
    the tools alone, ``None`` without a model or without tools. ``disagreement`` is the difference between model and
    tools in levels if it is so large that one of them must be wrong, else ``None``. ``score_sentence`` is the sentence
    of ``quality_reasoning`` that only repeats how the score was computed. ``error`` says why no answer of the model was
    usable.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "final_answer": "B",
                    "quality_reasoning": "The image shows moderate blur affecting sharpness, "
                    "consistent with tool score of 2.6.",
                    "need_replan": False,
                },
                {
                    "final_answer": UNABLE,
                    "quality_reasoning": "Insufficient evidence for vehicle region.",
                    "need_replan": True,
                    "replan_reason": "Missing tool scores for vehicle region",
                },
            ]
        }
    )

    final_answer: float | str
    quality_reasoning: Text = Field(min_length=1)
    need_replan: bool = False
    replan_reason: str | None = None
    used_evidence: dict[str, Any] | None = None
    quality_score: float | None = Field(default=None, ge=1, le=5)
    quality_probs: dict[LevelKey, float] | None = None
    probability_source: ProbabilitySource | None = None
    probability_mass: float | None = Field(default=None, ge=0, le=1)
    probability_mass_from: MassFrom | None = None
    score_interval: dict[Literal["80", "95"], tuple[float, float]] | None = None
    score_without_model: float | None = Field(default=None, ge=1, le=5)
    disagreement: float | None = Field(default=None, ge=0, le=4)
    score_sentence: str | None = None
    error: str | None = None

    @field_validator("final_answer")
    @classmethod
    def _answer_is_usable(cls, value: float | str) -> float | str:
        if isinstance(value, str):
            return _stripped(value)
        if not (math.isfinite(value) and 1 <= value <= 5):
            raise ValueError(f"a score lies in [1, 5], got {value}")
        return value

    @model_validator(mode="after")
    def _fields_agree(self) -> "SummarizerOutput":
        scored = self.quality_score is not None and not isinstance(self.final_answer, str)
        if scored and self.quality_score != self.final_answer:
            raise ValueError(f"quality_score {self.quality_score} differs from final_answer {self.final_answer}")
        if self.need_replan and not self.replan_reason:
            logger.warning("need_replan is set without a reason")
            self.replan_reason = "No reason provided"
        return self
