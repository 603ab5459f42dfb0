"""Run DSPy's own optimizers on one stage: GEPA, MIPROv2, SIMBA, BootstrapFewShot, or an instance of any of them.

They score one question at a time. A rating's score is the closeness of the program's fused score to the MOS; the tools
contribute the same part for every prompt. Their assessments are counted where the program is called, up to the budget.
The comparison on held-out questions and the decision to keep prompts are the same as for our own search.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from typing import Any, Literal, cast

import dspy
from dspy.teleprompt import Teleprompter
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError

from agenticiqa.eval.names import OPTIMIZERS
from agenticiqa.eval.optimize.items import Assessed, Stage, TuningQuestion, options_of
from agenticiqa.eval.optimize.measurements import Measurements, assessed_of
from agenticiqa.eval.optimize.objectives import feedback, marks
from agenticiqa.eval.optimize.reflection import UNREADABLE, broken, quoted
from agenticiqa.eval.optimize.search import KEPT_MONEY, Searched, Step, added_sentences, first_places
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import LimitReached, Limits, within
from agenticiqa.programs.errors import NoScore, Unanswered, UserError

Optimizer = Literal["reflect", "gepa", "mipro", "simba", "bootstrap"]
WIDEST = 4.0  # levels between the ends of the scale
FEWEST, FEW_SHOT, GOOD = 4, 3, 0.85  # fewest questions of each half; bootstrapped demos; their lowest mark
BATCH, CANDIDATES = 6, 2  # questions in a batch of GEPA and SIMBA; programs that SIMBA tries on a batch
EXTRA = "MIPROv2 needs optuna: pip install 'agenticiqa[optimize]'"
SPENT = "the budget was spent"


class Stopped(BaseException):
    """Raised to end a DSPy optimizer: ``__cause__`` is an unreachable model or an exceeded budget.

    The optimizers count any Exception as a bad answer, log it and go on, so an outage would look like a search that
    found nothing. This class is not an Exception, so it reaches the caller.
    """


@dataclass
class Count:
    """The count of an optimizer's assessments, shared by all copies of its student. Thread-safe.

    Requests beyond the budget, or beyond what ``may_go_on`` allows, get no answer, so the optimizer ends with the best
    program so far. It is stopped after as many further requests. ``ended`` is the reason.
    """

    budget: int
    measured: Measurements
    limits: Limits
    may_go_on: Callable[[], bool]
    taken: int = 0
    refused: int = 0
    ended: str = ""
    questions: set[tuple[Any, ...]] = field(default_factory=set)
    instructions: set[tuple[str, ...]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def admit(self, question: tuple[Any, ...], instructions: tuple[str, ...]) -> bool:
        """Count one more assessment if it is within the budget, and return whether it is."""
        with self.lock:
            if self.taken >= self.budget or not self.may_go_on():
                self.refused += 1
                self.ended = self.ended or (SPENT if self.taken >= self.budget else KEPT_MONEY)
                if self.refused > self.budget:
                    raise Stopped from LimitReached(self.ended)
                return False
            self.taken += 1
            self.measured.fresh += 1
            self.questions.add(question)
            self.instructions.add(instructions)
            return True

    def __deepcopy__(self, memo: dict[int, Any]) -> "Count":
        return self  # DSPy copies the student for every candidate


class Outage(BaseCallback):
    """The last error of a request; GEPA and SIMBA only log errors of requests for instructions."""

    error: dspy.LMError | None = None

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Keep the error of a failed request."""
        if isinstance(exception, dspy.LMError):
            self.error = exception


class Student(dspy.Module):
    """The program for an optimizer, which may change only the stage's predictors; unusable answers count as answers."""

    def __init__(self, program: AgenticIQA, names: Collection[str], stage: Stage, count: Count) -> None:
        super().__init__()
        copy: AgenticIQA = program.deepcopy()
        for question in copy.questions:  # otherwise the optimizer's own model, in DSPy's settings, would answer
            question.predictor.lm = question.models[0]
        tuned = {id(predictor) for name, predictor in copy.named_predictors() if name in names}
        for _, part in copy.named_sub_modules():
            if not any(id(each) in tuned for each in part.predictors()):
                part._compiled = True  # DSPy's mark for predictors that optimizers must not change
        self.program = copy
        self.count = count

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


def tuned_by_dspy(
    optimizer: str | Teleprompter,
    program: AgenticIQA,
    pool: Sequence[TuningQuestion],
    signatures: Mapping[str, type[dspy.Signature]],
    reflection: dspy.BaseLM | None,
    assessments: int,
    seed: int,
    measured: Measurements,
    limits: Limits,
    may_go_on: Callable[[], bool],
) -> tuple[AgenticIQA, Searched]:
    """Tune the stage's predictors by an optimizer; return the program and the changes.

    Assessments are counted in ``measured`` and ``limits``, and end when ``may_go_on`` is false.

    Raises UserError for an unknown optimizer or one without its package, and ``dspy.LMError`` for an outage.
    """
    if len(pool) < 2 * FEWEST:
        raise UserError(f"DSPy's optimizers need at least {2 * FEWEST} labeled questions to tune on, got {len(pool)}")
    stage, count = measured.stage, Count(assessments, measured, limits, may_go_on)
    student = Student(program, signatures, stage, count)
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
    half = max(FEWEST, min(len(asked) // 2, assessments // 5))

    def metric(gold: Any, made: Any, trace: Any = None, name: Any = None, own_trace: Any = None) -> Any:
        question = pool[gold.place]
        assessed = Assessed(failure=made.failure) if "failure" in made else assessed_of(made, {})
        mark = mark_of(stage, assessed, question)
        if optimizer == "gepa":
            return dspy.Prediction(score=mark, feedback=feedback(stage, [assessed], [question])[0])
        return mark >= GOOD if optimizer == "bootstrap" and trace is not None else mark

    ended = f"{optimizer if isinstance(optimizer, str) else type(optimizer).__name__} ended"
    originals = {name: signature.instructions for name, signature in signatures.items()}
    found = Searched(dict(originals), ended=ended)
    copy: AgenticIQA = program.deepcopy()
    outage = Outage()
    try:
        with within(limits), dspy.context(callbacks=[*dspy.settings.callbacks, outage]):
            made = _compiled(
                optimizer, metric, student, asked[half:], asked[:half], reflection, assessments, seed, measured.workers
            )
        _take_over(copy, made, signatures, pool, found)
    except Stopped as stopped:
        if not isinstance(stopped.__cause__, LimitReached):
            raise stopped.__cause__ or stopped from None
        found.ended = str(stopped.__cause__)
    except LimitReached as limit:  # of a request for an instruction
        found.ended = str(limit)
    except AdapterParseError:
        found.refused.append(UNREADABLE)
    found.spent, found.used = count.taken, len(count.questions)
    found.tried = len(count.instructions - {tuple(originals.values())})
    if count.refused:
        found.ended = count.ended
    elif not found.proposals and outage.error and not isinstance(outage.error, LimitReached):
        raise outage.error
    elif not found.proposals and found.ended == ended:
        found.ended = f"{ended}; it proposed no usable instruction"
    return copy, found


def mark_of(stage: Stage, assessed: Assessed, question: TuningQuestion) -> float:
    """Return the mark of one answer, in [0, 1]; for a rating, the closeness of the fused score to the MOS."""
    if stage in ("scoring", "all"):
        return 0.0 if assessed.fused is None else 1 - abs(assessed.fused - (question.target or 0.0)) / WIDEST
    return marks(stage, [assessed], [question])[0]


class Instructions(dspy.MIPROv2):
    """MIPROv2 without its worked examples: they cost assessments, and are dropped if none may be kept."""

    def _bootstrap_fewshot_examples(self, *args: Any, **kwargs: Any) -> None:
        return None


def _compiled(
    optimizer: str | Teleprompter,
    metric: Any,
    student: Student,
    train: list[dspy.Example],
    val: list[dspy.Example],
    reflection: dspy.BaseLM | None,
    assessments: int,
    seed: int,
    workers: int,
) -> Any:
    """Return the student that the optimizer compiled, with settings that fit the given number of assessments."""
    if isinstance(optimizer, Teleprompter):
        return optimizer.compile(student, trainset=[*train, *val])
    if optimizer == "bootstrap":
        bootstrap = dspy.BootstrapFewShot(metric, max_bootstrapped_demos=FEW_SHOT, max_labeled_demos=0)
        return bootstrap.compile(student, trainset=train[: max(assessments, 1)])
    if reflection is None:
        raise UserError(f"{optimizer} needs a model that writes instructions: name it with reflection=")
    if optimizer == "gepa":
        batch = min(BATCH, len(train))
        gepa = dspy.GEPA(
            metric,
            # GEPA checks its budget only before a proposal, which takes two batches and a validation.
            max_metric_calls=max(len(val) + 1, assessments - 2 * batch - len(val)),
            reflection_lm=reflection,
            reflection_minibatch_size=batch,
            num_threads=workers,
            seed=seed,
            # With its cache gepa 0.1.4 confuses scores of the training questions with those of validation.
            gepa_kwargs={"cache_evaluation": False},
        )
        return gepa.compile(student, trainset=train, valset=val)
    if optimizer == "mipro":
        if find_spec("optuna") is None:
            raise UserError(EXTRA)
        trials = max(1, assessments // len(val) - 1)  # one more validation for the original
        mipro = Instructions(
            metric,
            prompt_model=reflection,
            task_model=reflection,
            auto=None,
            num_candidates=min(trials, 8) + 1,
            max_bootstrapped_demos=0,
            max_labeled_demos=0,
            num_threads=workers,
            seed=seed,
        )
        return mipro.compile(
            student,
            trainset=train,
            valset=val,
            num_trials=trials,
            minibatch=False,
            program_aware_proposer=False,  # it would send our own source, 143,000 characters
        )
    if optimizer == "simba":
        # A step runs the batch for each candidate and once more; the last three programs run on all questions.
        size = max(2, min(BATCH, len(train), assessments // 8))
        steps = max(1, assessments // (size * (2 * CANDIDATES + 1) * 2))
        left = (assessments - steps * size * (2 * CANDIDATES + 1)) // (CANDIDATES + 1)
        simba = dspy.SIMBA(
            metric=metric, bsize=size, num_candidates=CANDIDATES, max_steps=steps, max_demos=0,
            prompt_model=reflection, num_threads=workers,
        )  # fmt: skip
        return simba.compile(student, trainset=[*train, *val][: max(size, left)], seed=seed)
    raise UserError(f"unknown optimizer {optimizer!r}: use {', '.join(OPTIMIZERS)}, or an instance of a DSPy optimizer")


def _take_over(
    copy: AgenticIQA,
    made: Any,
    signatures: Mapping[str, type[dspy.Signature]],
    pool: Sequence[TuningQuestion],
    found: Searched,
) -> None:
    """Copy the instructions and demos of an optimized student to the program, after checking each."""
    before = dict(found.best)
    theirs = {id(p): p for p in made.predictors()}
    at = {name.partition("program.")[2]: p for name, p in made.named_predictors() if id(p) in theirs}
    for name, predictor in copy.named_predictors():
        if name not in signatures or name not in at:
            continue
        text, original = at[name].signature.instructions, signatures[name]
        if fault := broken(text, original.instructions, original) or quoted(text, original.instructions, pool):
            found.refused.append(fault)
            continue
        predictor.signature = predictor.signature.with_instructions(text)
        predictor.demos = at[name].demos
        found.best[name] = text
        if text != before[name] or predictor.demos:
            added = added_sentences(before[name], text) or f"{len(predictor.demos)} worked examples"
            found.steps.append(
                Step(
                    len(found.steps) + 1,
                    0,
                    dict(found.best),
                    name,
                    taken=True,
                    why="by the optimizer",
                    added=added,
                )
            )
