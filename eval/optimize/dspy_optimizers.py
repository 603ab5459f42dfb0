"""Run GEPA, or an optimizer of DSPy that the caller made, with the limits and the comparison of our own search.

They score one question at a time. A rating's score is the closeness of the program's fused score to the MOS; the tools
contribute the same part for every prompt. Assessments are counted where the program is called, up to the budget.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock
from typing import Any, cast

import dspy
from dspy.utils.callback import BaseCallback

from agenticiqa.eval.optimize.for_dspy import example_of, failure_of, frozen_copy, metric
from agenticiqa.eval.optimize.items import TuningQuestion
from agenticiqa.eval.optimize.measurements import Measurements
from agenticiqa.eval.optimize.reflection import broken, quoted
from agenticiqa.eval.optimize.search import KEPT_MONEY, Searched, Step, added_sentences, first_places
from agenticiqa.eval.optimize.settings import DSPyOptimizer
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached, RunLimits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.errors import NoScore, Unanswered, UserError
from agenticiqa.programs.saving import prompts_of
from agenticiqa.programs.stages.ask import complete_examples

FEWEST = 4  # fewest questions of each half
BATCH = 6  # questions in a batch
SPENT = "the budget was spent"


class Stopped(BaseException):
    """Raised to end an optimizer: ``__cause__`` is an unreachable model, a limit, or the error of a metric.

    DSPy counts any Exception as a bad answer, logs it and goes on, so an outage would look like a search that found
    nothing. This class is not an Exception, so it reaches the caller.
    """


@dataclass
class Count:
    """The count of an optimizer's assessments, shared by all copies of its student. Thread-safe.

    Requests beyond the budget, or beyond what ``may_go_on`` allows, get no answer. ``ended`` is then the reason, and
    the optimizer returns the best program so far.
    """

    budget: int
    measured: Measurements
    limits: RunLimits
    may_go_on: Callable[[], bool]
    taken: int = 0
    ended: str = ""
    questions: set[tuple[Any, ...]] = field(default_factory=set)
    instructions: set[tuple[str, ...]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def admit(self, question: tuple[Any, ...], instructions: tuple[str, ...]) -> bool:
        """Count one more assessment if it is within the budget, and return whether it is."""
        with self.lock:
            if self.taken >= self.budget:
                self.ended = SPENT
            elif not self.may_go_on():
                self.ended = KEPT_MONEY
            if self.ended:
                return False
            self.taken += 1
            self.measured.fresh += 1
            self.questions.add(question)
            self.instructions.add(instructions)
            return True

    def __deepcopy__(self, memo: dict[int, Any]) -> "Count":
        return self  # DSPy copies the student for every candidate


class Outage(BaseCallback):
    """The last error of a request; GEPA only logs errors of requests for instructions."""

    error: dspy.LMError | None = None

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Keep the error of a failed request."""
        if isinstance(exception, dspy.LMError):
            self.error = exception


class Student(dspy.Module):
    """The program for an optimizer, which sees only the stage's predictors; unusable answers count as answers."""

    def __init__(self, program: AgenticIQA, names: Collection[str], count: Count) -> None:
        super().__init__()
        self.program, self.count = frozen_copy(program, [*names]), count
        self.models = tuple(question.predictor.lm for question in self.program.questions)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List the stage's predictors, also of a compiled program, which DSPy skips as a part of another module."""
        return [(f"program.{name}", parameter) for name, parameter in self.program.named_parameters()]

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Return the result; an unusable answer gives a prediction without a result. An outage ends the run."""
        instructions = tuple(predictor.signature.instructions for predictor in self.predictors())
        if not self.count.admit((inputs["image"], inputs["query"], inputs.get("reference")), instructions):
            return dspy.Prediction(failure=self.count.ended)
        for question, lm in zip(self.program.questions, self.models, strict=True):
            if question.predictor.lm is None:  # optimizers reset the model of the caller; SIMBA sets copies of it
                question.predictor.lm = lm
        try:
            with within(self.count.limits):  # DSPy's threads do not have them
                return cast(dspy.Prediction, self.program(**inputs))
        except (Unanswered, NoScore) as error:
            return dspy.Prediction(failure=str(error))
        except (dspy.LMError, UserError) as error:
            raise Stopped from error


Sets = dict[str, Any]  # the arguments of ``compile``, without the student


def gepa_for(
    pool: Sequence[TuningQuestion], reflection: dspy.BaseLM | None, seed: int, count: Count
) -> tuple[DSPyOptimizer, Sets]:
    """Return GEPA with the metric of this package and a budget that fits ``count``, and its questions, in two halves.

    Raises UserError for too few questions.
    """
    if len(pool) < 2 * FEWEST:
        raise UserError(f"GEPA needs at least {2 * FEWEST} labeled questions to tune on, got {len(pool)}")
    first = first_places(random.Random(seed), len(pool))
    others = [place for place in range(len(pool)) if place not in first]
    examples = [example_of(pool[place]) for place in [*first, *others]]
    # A validation costs its size each time; a fifth of the budget buys five of them.
    half = max(FEWEST, min(len(examples) // 2, count.budget // 5))
    batch = min(BATCH, len(examples) - half)
    gepa = dspy.GEPA(
        metric,
        # GEPA checks its budget only before a proposal, which takes two batches and a validation.
        max_metric_calls=max(half + 1, count.budget - 2 * batch - half),
        reflection_lm=reflection,
        reflection_minibatch_size=batch,
        num_threads=count.measured.workers,
        seed=seed,
        # With its cache gepa 0.1.4 confuses scores of the training questions with those of validation.
        gepa_kwargs={"cache_evaluation": False},
    )
    return gepa, {"trainset": examples[half:], "valset": examples[:half]}


def _watched(optimizer: DSPyOptimizer, count: Count) -> Any:
    """Return the optimizer with a metric that ends the run if it raises; GEPA also ends when the budget is spent."""
    watched: Any = copy(optimizer)
    if isinstance(optimizer, dspy.GEPA):
        watched.metric_fn = _raising(watched.metric_fn)
        callbacks = watched.gepa_kwargs.get("stop_callbacks") or []
        stops = [lambda state: bool(count.ended), *(callbacks if isinstance(callbacks, Sequence) else [callbacks])]
        watched.gepa_kwargs = {**watched.gepa_kwargs, "stop_callbacks": stops}
    elif getattr(optimizer, "metric", None) is not None:
        watched.metric = _raising(watched.metric)
    return watched


def _raising(metric_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a metric that raises ``Stopped`` for any error, and gives 0 where the program gave no result."""

    @wraps(metric_fn)
    def marked(gold: dspy.Example, made: dspy.Prediction | None, *more: Any) -> Any:
        if failure := failure_of(made):
            return dspy.Prediction(score=0.0, feedback=failure) if len(more) > 1 else 0.0
        try:
            return metric_fn(gold, made, *more)
        except Exception as error:
            raise Stopped from error

    return marked


def tuned_by_dspy(
    optimizer: DSPyOptimizer,
    sets: Sets,
    program: AgenticIQA,
    pool: Sequence[TuningQuestion],
    signatures: Mapping[str, type[dspy.Signature]],
    count: Count,
) -> Searched:
    """Tune the stage's predictors by an optimizer on ``sets``; return instructions, worked examples and changes.

    Raises ``dspy.LMError`` for an outage, and what a metric raised.
    """
    originals = {name: signature.instructions for name, signature in signatures.items()}
    searched = Searched(dict(originals), ended=f"{type(optimizer).__name__} ended")
    outage = Outage()
    try:
        with within(count.limits), dspy.context(callbacks=[*dspy.settings.callbacks, outage]):
            if isinstance(optimizer, dspy.MIPROv2):
                sets["program_aware_proposer"] = False  # the default would send the source code of this package
            made = _watched(optimizer, count).compile(Student(program, signatures, count), **sets)
        _take_over(program, made.program, pool, searched)
    except Stopped as stopped:
        if not isinstance(stopped.__cause__, LimitReached):
            raise stopped.__cause__ or stopped from None
        searched.ended = str(stopped.__cause__)
    searched.spent, searched.used = count.taken, len(count.questions)
    searched.tried = len(count.instructions - {tuple(originals.values())})
    searched.ended = count.ended or searched.ended
    if not searched.proposals and not count.ended:
        if outage.error and not isinstance(outage.error, LimitReached):
            raise outage.error
        searched.ended = f"{searched.ended}; it changed no prompt"
    return searched


def _take_over(program: AgenticIQA, made: AgenticIQA, pool: Sequence[TuningQuestion], searched: Searched) -> None:
    """Copy the changed instructions and worked examples of an optimized program to the outcome, after checking each."""
    before, after = prompts_of(program), prompts_of(made)
    signatures = {name: predictor.signature for name, predictor in program.named_predictors()}
    for name, predictor in made.named_predictors():
        text, original = predictor.signature.instructions, signatures[name]
        if reason := broken(text, original) or quoted(text, original.instructions, pool):
            searched.refused.append(reason)
        elif after[name] != before[name]:
            searched.best[name], searched.demos[name] = text, complete_examples(predictor)
            added = added_sentences(original.instructions, text) or f"{len(searched.demos[name])} worked examples"
            number, texts = len(searched.steps) + 1, dict(searched.best)
            step = Step(number, 0, texts, name, taken=True, why="by the optimizer", added=added)
            searched.steps.append(step)
