"""Judge labeled images with the program as it is being tuned, and keep of each result what tuning needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import dspy

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


@dataclass(frozen=True)
class TuningQuestion:
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


Progress = Callable[[Iterator[Any], int], Iterator[Any]]


def rating(label: LabeledImage, scale: MosScale) -> TuningQuestion:
    """A label as the question for its rating."""
    return TuningQuestion(label.image, DEFAULT_QUERY, label.content, label.reference, scale.to_1_5(label.mos))


def model_rates(program: AgenticIQA) -> bool:
    """Whether the levels' probabilities are a model's: the stage that rates has a predictor."""
    return any(name.startswith("summarizer.") for name, _ in program.named_predictors())


def judge(
    program: AgenticIQA,
    questions: Sequence[TuningQuestion],
    workers: int,
    progress: Progress = lambda outcomes, total: outcomes,
    *,
    keep_calls: bool = False,
) -> list[Judged]:
    """Every question's result, in their order; one without a usable answer has a ``failure``.

    ``progress`` wraps the outcomes, e.g. to show a bar. ``keep_calls`` keeps the calls, with their images. Raises every
    error but an unusable answer, outages included, and nothing more is sent after it.
    """
    jobs = [Job(question.image, question.query, question.reference) for question in questions]
    place = {id(job): index for index, job in enumerate(jobs)}  # equal jobs may be in one batch
    traced = cast(AgenticIQA, Traced(program))

    def reduced(prediction: Any) -> Judged:
        return _judged(prediction.result, prediction.calls, keep_calls)

    judged = [Judged()] * len(jobs)
    for job, outcome in progress(judge_many(traced, jobs, workers, reduced, stop_when=_ends_the_run), len(jobs)):
        if not isinstance(outcome, Exception):
            judged[place[id(job)]] = outcome
        elif _ends_the_run(outcome):
            raise outcome
        else:
            judged[place[id(job)]] = Judged(failure=str(outcome))
    return judged


class Traced(dspy.Module):
    """The program, returning a ``dspy.Prediction`` of its ``result`` and of its ``calls``, those with an answer."""

    def __init__(self, program: AgenticIQA) -> None:
        super().__init__()
        self.program = program

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Judge one image, given as to the program."""
        trace: list[Any] = []
        with dspy.context(trace=trace):
            result = self.program(**inputs)
        name_of = {id(predictor): name for name, predictor in self.program.named_predictors()}
        calls = [
            ModelCall(name_of[id(predictor)], given, dict(answer))
            for predictor, given, answer in trace
            if id(predictor) in name_of
        ]
        return dspy.Prediction(result=result, calls=calls)


def _judged(result: Assessment, calls: Sequence[ModelCall], keep_calls: bool) -> Judged:
    summary = result.summarizer_result
    stated = summary.probability_source not in (None, "uniform")
    probabilities = (summary.quality_probs or {}) if stated else {}
    return Judged(
        expectation=sum(int(level) * p for level, p in probabilities.items()) or None,
        fused=result.quality_score,
        final_answer=str(result.final_answer),
        reasoning=result.quality_reasoning,
        evidence=result.executor_evidence,
        rejected_answers=result.rejected_answers,
        failure=None if result.quality_score is not None else result.quality_reasoning,
        answered=frozenset(call.predictor for call in calls),
        asked=frozenset(result.usage_by_stage),
        calls=tuple(calls) if keep_calls else (),
    )


def _ends_the_run(outcome: object) -> bool:
    return isinstance(outcome, Exception) and not isinstance(outcome, (Unanswered, NoScore))


NEVER_ASKED = "which was never asked about the {n} images of the first pass"
NEVER_VALID = "which was asked, but of whose answers none was valid in the first pass"


def unreached(program: AgenticIQA, predictors: Iterable[str], first_pass: Sequence[Judged]) -> dict[str, str]:
    """The predictors without an accepted answer in a first pass, with the reason; none if nothing was answered at all.

    There is nothing to reflect on about such a predictor.
    """
    answered = frozenset[str]().union(*(judged.answered for judged in first_pass))
    if not answered:
        return {}
    asked = frozenset[str]().union(*(judged.asked for judged in first_pass))
    stage_of = {name: part.stage for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}

    def why(predictor: str) -> str:
        stages = {stage for name, stage in stage_of.items() if f"self.{predictor}".startswith(f"{name}.")}
        return NEVER_VALID if stages & asked else NEVER_ASKED.format(n=len(first_pass))

    return {name: why(name) for name in predictors if name not in answered}
