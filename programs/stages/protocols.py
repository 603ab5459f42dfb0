"""The inputs and outputs of each stage: one Protocol and one frozen dataclass per stage.

A stage that asks a model and its offline counterpart satisfy the same Protocol, so a program may use either.
``tests/programs/stages/test_protocols.py`` compares the signatures of both with the Protocol. Stages are also
``dspy.Module`` objects: callable sync, and async through ``acall``.

Shared by all: ``image`` is the image to assess and ``reference`` its pristine original, ``None`` without one; ``query``
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
    MassFrom,
    PlannerOutput,
    ProbabilitySource,
    QueryType,
    SummarizerOutput,
)

RejectedAnswers = Mapping[str, Sequence[str]]  # the reasons by stage
ToolSelection = dict[str, dict[str, str]]  # region to distortion to the tool's name
Measurements = dict[str, dict[str, float]]  # region to measured quantity to value


class StageResult(Protocol):
    """The base of every stage's result."""

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
    """The distortions of each region.

    Attributes:
        distortion_set: The distortions by region.
        measurements: The values that they are based on, by region and quantity, if any.
        rejected_answers: By stage, one reason for each rejected answer of a model.
    """

    distortion_set: Distortions
    measurements: Measurements = field(default_factory=dict)
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Analyzed:
    """The severity of every distortion by region; ``measurements`` as in Detected.

    ``local_damage`` has, by region, the places of distortions that affect only a part of it.
    """

    distortion_analysis: dict[str, list[DistortionAnalysis]]
    measurements: Measurements = field(default_factory=dict)
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    local_damage: Mapping[str, list[DamagedPart]] = field(default_factory=dict)


@dataclass(frozen=True)
class Selected:
    """The tool for each distortion of each region; ``from_table`` says that the program's table chose them."""

    selected_tools: ToolSelection
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    from_table: bool = False


@dataclass(frozen=True)
class Executed:
    """The evidence that the plan asked for."""

    evidence: ExecutorOutput
    rejected_answers: RejectedAnswers = field(default_factory=dict)


@dataclass(frozen=True)
class Scored:
    """Probabilities over the levels 1 to 5, which sum to one, and their source.

    ``mass`` is the share of the level token's probability that fell on levels, in [0, 1]; ``None`` if no tokens were
    read; ``mass_from`` says among which tokens. ``spread`` is the standard deviation, in levels, that an offline MOS
    estimate reports for itself. ``model`` is the name of the model that answered, without the address of its server;
    ``None`` if unknown.
    """

    probabilities: Probabilities
    source: ProbabilitySource
    reasoning: str
    mass: float | None = None
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    spread: float | None = None
    model: str | None = None
    mass_from: MassFrom | None = None


@dataclass(frozen=True)
class Answered:
    """A letter of the options, or words, and the reason.

    ``needs_evidence`` is false if missing evidence is no caveat, for example in the answer about the image's size.
    """

    final_answer: str
    reasoning: str
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    needs_evidence: bool = True


@dataclass(frozen=True)
class Summarized:
    """The answer, the form that the question requests, and its options by letter."""

    result: SummarizerOutput
    query_type: QueryType
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplanVerdict:
    """The model's reasons to plan again; empty without a request or if the evidence is sufficient."""

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
        """Plan. ``feedback`` has the previous plan and why its evidence was insufficient; empty for the first plan.

        A plan that does what an earlier one did (``plan_rules.effect_of``) is not carried out, and the answer is final.
        """


class ExecutorStage(Protocol):
    """Gathers the evidence that a plan asks for."""

    def __call__(
        self,
        image: LoadedImage,
        query: str,
        plan: PlannerOutput,
        reference: LoadedImage | None,
        earlier: ExecutorOutput | None = None,
    ) -> Executed:
        """Collect the evidence, and add it to ``earlier``, that for the previous plans for the same question, if any.

        Raises ToolError if the plan names an unknown tool, or one that needs a reference.
        """


class LocatorStage(Protocol):
    """Finds named regions in the image."""

    def __call__(self, image: LoadedImage, regions: list[str]) -> Located:
        """Return the box of every region of ``regions``."""


class DetectorStage(Protocol):
    """Finds the distortions of each region."""

    def __call__(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Detected:
        """Return the distortions of every region of ``regions``."""


class AnalystStage(Protocol):
    """Rates the severity of distortions."""

    def __call__(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """Return the severity of every distortion of ``distortion_set``."""


class SelectorStage(Protocol):
    """Chooses the tools that measure distortions."""

    def __call__(self, distortion_set: Distortions, tools: list[Tool]) -> Selected:
        """Return one of ``tools`` for every distortion of ``distortion_set``."""


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
        """Answer. ``options`` are the caller's options by letter; if there are none, the query itself may list some.

        For a question of the same kind, equal evidence of a further plan is not summarized again.

        Raises NoScore if a score is requested, but neither a tool nor a model provides one.
        """


class ScorerStage(Protocol):
    """Gives probabilities over the quality levels."""

    def __call__(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """Return the probability that observers would choose each level."""


class AnswererStage(Protocol):
    """Answers a question that does not request a score."""

    def __call__(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Answered:
        """Answer. ``options`` are the allowed answers by letter; empty for a free answer."""


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
        can_add: bool,
    ) -> Decided:
        """Decide. ``iteration`` is the number of replans so far; at most ``max_iterations`` are requested.

        ``can_add`` says whether a new plan can add evidence (``stages.remedies``); without it, none is requested.
        """

    def needs_verdict(
        self, plan: PlannerOutput, evidence: ExecutorOutput, iteration: int, max_iterations: int, can_add: bool
    ) -> bool:
        """Return whether a model has to decide about the evidence."""

    def verdict(self, query: str, plan: PlannerOutput, evidence: ExecutorOutput) -> ReplanVerdict:
        """Return the model's verdict. It does not depend on the answer, so both can be requested in parallel."""
