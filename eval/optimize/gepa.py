"""Run DSPy's GEPA on one stage, with the measure, the limits and the comparison of our own search.

GEPA scores one question at a time. A rating's score is the closeness of the program's fused score to the MOS; the tools
contribute the same part for every prompt. Its assessments are counted where the program is called, up to the budget.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

import dspy
from dspy.utils.callback import BaseCallback

from agenticiqa.eval.optimize.items import Assessed, Stage, TuningQuestion, options_of
from agenticiqa.eval.optimize.measurements import Measurements, assessed_of
from agenticiqa.eval.optimize.objectives import feedback, marks
from agenticiqa.eval.optimize.reflection import broken, quoted
from agenticiqa.eval.optimize.search import KEPT_MONEY, Searched, Step, added_sentences, first_places
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import LimitReached, Limits, within
from agenticiqa.programs.errors import NoScore, Unanswered, UserError

WIDEST = 4.0  # levels between the ends of the scale
FEWEST = 4  # questions of each half
BATCH = 6  # questions in a batch
SPENT = "the budget was spent"


class Stopped(BaseException):
    """Raised to end GEPA: ``__cause__`` is an unreachable model or a limit.

    GEPA counts any Exception as a bad answer, logs it and goes on, so an outage would look like a search that found
    nothing. This class is not an Exception, so it reaches the caller.
    """


@dataclass
class Count:
    """The count of GEPA's assessments, shared by all copies of its student. Thread-safe.

    Requests beyond the budget, or beyond what ``may_go_on`` allows, get no answer. ``ended`` is then the reason, and
    GEPA returns the best program so far.
    """

    budget: int
    measured: Measurements
    limits: Limits
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
        return self  # GEPA copies the student for every candidate


class Outage(BaseCallback):
    """The last error of a request; GEPA only logs errors of requests for instructions."""

    error: dspy.LMError | None = None

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Keep the error of a failed request."""
        if isinstance(exception, dspy.LMError):
            self.error = exception


class Student(dspy.Module):
    """The program for GEPA, which sees only the stage's predictors; unusable answers count as answers."""

    def __init__(self, program: AgenticIQA, names: Collection[str], count: Count) -> None:
        super().__init__()
        self.program: AgenticIQA = program.deepcopy()
        self.names, self.count = frozenset(names), count

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        """Return the predictors that are tuned, by their names in the program."""
        return [(name, each) for name, each in self.program.named_predictors() if name in self.names]

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Return the result; an unusable answer gives a prediction without a result. An outage ends the run."""
        instructions = tuple(predictor.signature.instructions for predictor in self.predictors())
        if not self.count.admit((inputs["image"], inputs["query"], inputs["reference"]), instructions):
            return dspy.Prediction(failure=self.count.ended)
        try:
            with within(self.count.limits):  # DSPy's threads do not have them
                return cast(dspy.Prediction, self.program(**inputs))
        except (Unanswered, NoScore) as error:
            return dspy.Prediction(failure=str(error))
        except (dspy.LMError, UserError) as error:
            raise Stopped from error


def tuned_by_gepa(
    program: AgenticIQA,
    pool: Sequence[TuningQuestion],
    signatures: Mapping[str, type[dspy.Signature]],
    reflection: dspy.BaseLM,
    seed: int,
    count: Count,
) -> Searched:
    """Tune the stage's predictors; return the instructions and the changes. Assessments are counted in ``count``.

    Raises UserError for too few questions, and ``dspy.LMError`` for an outage.
    """
    if len(pool) < 2 * FEWEST:
        raise UserError(f"GEPA needs at least {2 * FEWEST} labeled questions to tune on, got {len(pool)}")
    first = first_places(random.Random(seed), len(pool))
    asked = [
        dspy.Example(
            image=str(pool[place].image),
            query=pool[place].query,
            reference=str(pool[place].reference) if pool[place].reference else None,
            options=options_of(pool[place]),
            place=place,
        ).with_inputs("image", "query", "reference", "options")
        for place in [*first, *(place for place in range(len(pool)) if place not in first)]
    ]
    # A validation costs its size each time; a fifth of the budget buys five of them.
    half = max(FEWEST, min(len(asked) // 2, count.budget // 5))
    batch = min(BATCH, len(asked) - half)

    def metric(gold: Any, made: Any, trace: Any = None, name: Any = None, own_trace: Any = None) -> Any:
        question = pool[gold.place]
        assessed = Assessed(failure=made.failure) if "failure" in made else assessed_of(made, {})
        notes = feedback(count.measured.stage, [assessed], [question])
        return dspy.Prediction(score=mark_of(count.measured.stage, assessed, question), feedback=notes[0])

    gepa = dspy.GEPA(
        metric,
        # GEPA checks its budget only before a proposal, which takes two batches and a validation.
        max_metric_calls=max(half + 1, count.budget - 2 * batch - half),
        reflection_lm=reflection,
        reflection_minibatch_size=batch,
        num_threads=count.measured.workers,
        seed=seed,
        # With its cache gepa 0.1.4 confuses scores of the training questions with those of validation.
        gepa_kwargs={"cache_evaluation": False, "stop_callbacks": lambda state: bool(count.ended)},
    )
    originals = {name: signature.instructions for name, signature in signatures.items()}
    found = Searched(dict(originals), ended="gepa ended")
    outage = Outage()
    try:
        with within(count.limits), dspy.context(callbacks=[*dspy.settings.callbacks, outage]):
            made = gepa.compile(Student(program, signatures, count), trainset=asked[half:], valset=asked[:half])
        _take_over(made, signatures, pool, found)
    except Stopped as stopped:
        if not isinstance(stopped.__cause__, LimitReached):
            raise stopped.__cause__ or stopped from None
        found.ended = str(stopped.__cause__)
    found.spent, found.used = count.taken, len(count.questions)
    found.tried = len(count.instructions - {tuple(originals.values())})
    found.ended = count.ended or found.ended
    if not found.proposals and not count.ended:
        if outage.error and not isinstance(outage.error, LimitReached):
            raise outage.error
        found.ended = f"{found.ended}; it proposed no usable instruction"
    return found


def mark_of(stage: Stage, assessed: Assessed, question: TuningQuestion) -> float:
    """Return the mark of one answer, in [0, 1]; for a rating, the closeness of the fused score to the MOS."""
    if stage in ("scoring", "all"):
        return 0.0 if assessed.fused is None else 1 - abs(assessed.fused - (question.target or 0.0)) / WIDEST
    return marks(stage, [assessed], [question])[0]


def _take_over(
    made: Student, signatures: Mapping[str, type[dspy.Signature]], pool: Sequence[TuningQuestion], found: Searched
) -> None:
    """Copy the instructions of an optimized student to the outcome, after checking each."""
    for name, predictor in made.named_predictors():
        text, original = predictor.signature.instructions, signatures[name]
        if fault := broken(text, original) or quoted(text, original.instructions, pool):
            found.refused.append(fault)
        elif text != original.instructions:
            found.best[name] = text
            added = added_sentences(original.instructions, text)
            found.steps.append(
                Step(len(found.steps) + 1, 0, dict(found.best), name, taken=True, why="by the optimizer", added=added)
            )
