"""Answer questions by the program during tuning; measurements are kept on disk and never repeated."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import dspy

from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion, assessed_of, options_of
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile, kept_rows
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.saving import all_predictors, prompts_of
from agenticiqa.programs.stages.ask import CheckedPredict

Progress = Callable[[Iterator[Any], int], Iterator[Any]]


class Measurements:
    """Measured answers of programs, by prompts and question.

    ``assess`` asks only questions not in ``kept``, and stores each answer on arrival; without a file, in memory.
    """

    def __init__(
        self, stage: Stage, workers: int = 1, kept: ResultsFile | None = None, progress: Progress | None = None
    ) -> None:
        self.stage, self.workers, self.kept = stage, workers, kept
        self.progress = progress or (lambda outcomes, total: outcomes)
        self.known: dict[tuple[str, str], Assessed] = {}
        self.fresh = 0  # number of images assessed in this process
        self.limit: LimitReached | None = None
        for _, row in kept_rows(kept.path) if kept else ():
            self.known[row["prompts"], row["name"]] = Assessed.from_json(row["assessed"])

    def assess(self, program: AgenticIQA, questions: Sequence[TuningQuestion]) -> list[Assessed]:
        """Return every question's result, in their order; one without a usable answer has a ``failure``.

        Raises every error except an unusable answer, including outages and limits; then sends nothing more.
        """
        prompts = digest(prompts_of(program))
        keys = [(prompts, question.key) for question in questions]
        todo = {key: question for key, question in zip(keys, questions, strict=True) if key not in self.known}
        if todo and self.limit:
            raise self.limit  # the limit that ended the run
        try:
            for key, assessed in self._answers(program, todo):
                self.known[key] = assessed
                self.fresh += 1
                if self.kept:
                    self.kept.append({"name": key[1], "prompts": key[0], "assessed": asdict(assessed)})
        except LimitReached as limit:
            self.limit = limit
            raise
        return [self.known[key] for key in keys]

    def known_of(self, program: AgenticIQA, question: TuningQuestion) -> Assessed | None:
        """Return the result of one question, if there is one."""
        return self.known.get((digest(prompts_of(program)), question.key))

    def _answers(
        self, program: AgenticIQA, questions: Mapping[tuple[str, str], TuningQuestion]
    ) -> Iterator[tuple[tuple[str, str], Assessed]]:
        """Yield results by question key, as they come."""
        jobs = {
            key: Job(question.image, question.query, question.reference, options=options_of(question))
            for key, question in questions.items()
        }
        key_of = {id(job): key for key, job in jobs.items()}
        traced = cast(AgenticIQA, Traced(program))
        outcomes = assess_many(traced, jobs.values(), self.workers, _assessed, stop_when=_ends_the_run)
        for job, outcome in self.progress(outcomes, len(jobs)):
            if not isinstance(outcome, Exception):
                yield key_of[id(job)], outcome
            elif _ends_the_run(outcome):
                raise outcome
            else:
                rejected = len(outcome.reasons) if isinstance(outcome, Unanswered) else 0
                yield key_of[id(job)], Assessed(failure=str(outcome), rejected=rejected)


class Traced(dspy.Module):
    """The program with a trace: it returns a ``dspy.Prediction`` of its ``result`` and the texts of its ``calls``."""

    def __init__(self, program: dspy.Module) -> None:
        super().__init__()
        self.program = program

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Assess one image, with the arguments of the program."""
        trace: list[Any] = []
        with dspy.context(trace=trace):
            result = self.program(**inputs)
        name_of = {id(predictor): name for name, predictor in all_predictors(self.program).items()}
        calls = {
            name_of[id(predictor)]: {"inputs": _texts(values), "outputs": _texts(dict(answer))}
            for predictor, values, answer in trace
            if id(predictor) in name_of
        }
        return dspy.Prediction(result=result, calls=calls)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values other than images, as text."""
    plain = {name: value for name, value in values.items() if not isinstance(value, dspy.Image | LoadedImage)}
    return {
        name: value.model_dump_json(by_alias=True) if hasattr(value, "model_dump_json") else str(value)
        for name, value in plain.items()
    }


def _assessed(traced: Any) -> Assessed:
    return assessed_of(traced.result, traced.calls)


def _ends_the_run(outcome: object) -> bool:
    return isinstance(outcome, Exception) and not isinstance(outcome, (Unanswered, NoScore))


def with_instructions(
    program: AgenticIQA, candidate: Mapping[str, str], demos: Mapping[str, list[Any]] | None = None
) -> AgenticIQA:
    """Return a copy of the program with these instructions and worked examples, by the names of their predictors."""
    copy: AgenticIQA = program.deepcopy()
    for name, predictor in copy.named_predictors():
        if name in candidate:
            predictor.signature = predictor.signature.with_instructions(candidate[name])
            predictor.demos = (demos or {}).get(name, predictor.demos)
    return copy


NEVER_ASKED = "because it sent no request for the {n} images of the first pass"
NEVER_VALID = "because it had no valid answer in the first pass"


def unreached(program: AgenticIQA, predictors: Iterable[str], first_pass: Sequence[Assessed]) -> dict[str, str]:
    """Return the predictors without an accepted answer in a first pass, with the reason; empty if all answers failed.

    Reflection has no data about such a predictor.
    """
    answered = {name for assessed in first_pass for name in assessed.answered}
    if not answered:
        return {}
    stages_asked = {stage for assessed in first_pass for stage in assessed.asked}
    stage_of = {name: part.stage for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}

    def why(predictor: str) -> str:
        stages = {stage for name, stage in stage_of.items() if f"self.{predictor}".startswith(f"{name}.")}
        return NEVER_VALID if stages & stages_asked else NEVER_ASKED.format(n=len(first_pass))

    return {name: why(name) for name in predictors if name not in answered}
