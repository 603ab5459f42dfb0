"""Judge labeled images with the program as it is being tuned, and keep of each result what tuning needs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import dspy

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.optimize.judged import Judged, ModelCall, Question
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

Progress = Callable[[Iterator[Any], int], Iterator[Any]]


def rating(label: LabeledImage, scale: MosScale) -> Question:
    """A label as the question for its rating."""
    return Question(label.image, DEFAULT_QUERY, label.content, label.reference, scale.to_1_5(label.mos))


def model_rates(program: AgenticIQA) -> bool:
    """Whether the levels' probabilities are a model's: the stage that rates has a predictor."""
    return any(name.startswith("summarizer.") for name, _ in program.named_predictors())


def judge(
    program: AgenticIQA,
    questions: Sequence[Question],
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
