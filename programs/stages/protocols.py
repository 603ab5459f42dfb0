"""What each stage is given and what it returns: one Protocol and one frozen dataclass per stage.

A stage that asks a model and its offline twin satisfy the same Protocol, so a program may be composed of either.
``tests/programs/stages/test_protocols.py`` compares the signatures of both with the Protocol's. All of them are
``dspy.Module`` objects as well: callable sync, and async through ``acall``.

Shared by all: ``image`` is the image to judge and ``reference`` its pristine original, ``None`` without one; ``query``
is the user's question; ``boxes`` has the box of each named region in pixels (left, top, right, bottom), ``None`` for a
region that was not found. Every result has ``rejected_answers``: for each stage that asked a model and rejected
answers, one reason per rejected answer, in order. A model that gives no usable answer within the allowed attempts
raises Unanswered; one that cannot be reached raises ``dspy.LMError``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agenticiqa.programs.fusion.formula import Probabilities
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.types import (
    Boxes,
    DamagedPart,
    DistortionAnalysis,
    Distortions,
    ExecutorOutput,
    PlannerOutput,
    ProbabilitySource,
    QueryType,
    SummarizerOutput,
)

RejectedAnswers = Mapping[str, Sequence[str]]  # by stage, the reasons
ToolSelection = dict[str, dict[str, str]]  # region to distortion to the tool's name
Measurements = dict[str, dict[str, float]]  # region to measured quantity to value


class StageResult(Protocol):
    """What every result has."""

    @property
    def rejected_answers(self) -> RejectedAnswers:
        """By stage, one reason for each rejected answer."""


@dataclass(frozen=True)
class Planned:
    """The plan."""

    plan: PlannerOutput
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Located:
    """The box of each region in pixels, ``None`` for one not found; ``remarks`` are sentences for the notes."""

    boxes: Boxes
    remarks: Sequence[str] = ()
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Detected:
    """The distortions of each region; ``measurements`` are the values that they were read from, if any were taken."""

    distortion_set: Distortions
    measurements: Measurements = field(default_factory=dict)
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Analyzed:
    """The severity of every distortion by region; ``measurements`` as in Detected.

    ``local_damage`` has, by region, where those distortions are that are in a part of it only.
    """

    distortion_analysis: dict[str, list[DistortionAnalysis]]
    measurements: Measurements = field(default_factory=dict)
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    local_damage: Mapping[str, list[DamagedPart]] = field(default_factory=dict)


@dataclass(frozen=True)
class Selected:
    """The tool for each distortion of each region."""

    selected_tools: ToolSelection
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Executed:
    """The evidence that the plan asked for."""

    evidence: ExecutorOutput
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Scored:
    """Probabilities over the levels 1 to 5, which sum to one, and where they came from.

    ``mass`` is the share of the level token's probability that fell on levels, in [0, 1]; ``None`` where no tokens were
    read. ``spread`` is the standard deviation, in levels, that an offline estimate of the opinion states for itself.
    ``model`` is the one that answered, without the address of its server; ``None`` where none is known.
    """

    probabilities: Probabilities
    source: ProbabilitySource
    reasoning: str
    mass: float | None = None
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    spread: float | None = None
    model: str | None = None


@dataclass(frozen=True)
class Answered:
    """A letter of the options, or words, and the reason."""

    final_answer: str
    reasoning: str
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Summarized:
    """The answer, the form in which the question asked for it, and the options that it offered, by letter."""

    result: SummarizerOutput
    query_type: QueryType
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplanVerdict:
    """The judge's reasons to plan again; none where it was not asked or found the evidence sufficient."""

    reasons: Sequence[str] = ()
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Decided:
    """The answer with ``need_replan`` and ``replan_reason`` set."""

    result: SummarizerOutput
    rejected_answers: RejectedAnswers = field(default_factory=dict)


class PlannerStage(Protocol):
    """Reads the question and makes the plan."""

    def __call__(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """``feedback`` has the previous plan and why its evidence was not sufficient; empty for the first plan."""


class ExecutorStage(Protocol):
    """Gathers the evidence that a plan asks for."""

    def __call__(self, image: LoadedImage, query: str, plan: PlannerOutput, reference: LoadedImage | None) -> Executed:
        """Raises ToolError when the plan names a tool that is unknown or lacks its reference."""


class LocatorStage(Protocol):
    """Finds named regions in the image."""

    def __call__(self, image: LoadedImage, regions: list[str]) -> Located:
        """The box of every region of ``regions``."""


class DetectorStage(Protocol):
    """Finds the distortions of each region."""

    def __call__(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Detected:
        """The distortions of every region of ``regions``."""


class AnalystStage(Protocol):
    """Rates the severity of distortions."""

    def __call__(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """The severity of every distortion of ``distortion_set``."""


class SelectorStage(Protocol):
    """Chooses the tools that measure distortions."""

    def __call__(self, distortion_set: Distortions, tools: list[Tool]) -> Selected:
        """A tool, of those in ``tools``, for every distortion of ``distortion_set``."""


class SummarizerStage(Protocol):
    """Answers the question from the evidence."""

    def __call__(
        self,
        image: LoadedImage,
        query: str,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        reference: LoadedImage | None,
        options: Mapping[str, str] | None = None,
    ) -> Summarized:
        """``options`` are those that the caller gave, by letter; without them the query's own words may list some.

        Raises NoScore when a score is asked for, and neither a tool nor a model gave anything to make it of."""


class ScorerStage(Protocol):
    """Gives probabilities over the quality levels."""

    def __call__(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """The probabilities that observers would choose each level."""


class AnswererStage(Protocol):
    """Answers a question that asks for no score."""

    def __call__(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Answered:
        """``options`` are the answers offered, by letter; empty for a free answer."""


class ReplanStage(Protocol):
    """Decides whether to plan again."""

    def __call__(
        self,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        result: SummarizerOutput,
        verdict: ReplanVerdict,
        iteration: int,
        max_iterations: int,
    ) -> Decided:
        """``iteration`` counts the replans so far; none is asked for once there are ``max_iterations``."""

    def needs_verdict(self, plan: PlannerOutput, evidence: ExecutorOutput, iteration: int, max_iterations: int) -> bool:
        """Whether there is something to ask a judge about the evidence."""

    def verdict(self, query: str, plan: PlannerOutput, evidence: ExecutorOutput) -> ReplanVerdict:
        """The judge's verdict; it is not shown the answer, so it can be asked while the answer is being made."""
