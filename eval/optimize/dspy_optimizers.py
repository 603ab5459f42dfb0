"""DSPy's own optimizers on one stage: GEPA, MIPROv2, SIMBA, BootstrapFewShot, or an instance of any of them.

They score one question at a time, so of a rating it is how near the program's fused score comes: the tools' part of it
is the same for every prompt. They are held to a number of judgments as far as their settings allow; the comparison on
held-out questions, and what is kept, is the same as for our own search.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, cast

import dspy
from dspy.teleprompt import Teleprompter

from agenticiqa.eval.names import OPTIMIZERS
from agenticiqa.eval.optimize.items import Judged, Stage, TuningQuestion, options_of
from agenticiqa.eval.optimize.judging import judged_of
from agenticiqa.eval.optimize.objectives import feedback, marks
from agenticiqa.eval.optimize.reflection import Stopped, broken, quoted
from agenticiqa.eval.optimize.search import Searched, Step, added_sentences
from agenticiqa.eval.questions.planning import FirstPlan
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import NoScore, Unanswered, UserError

Optimizer = Literal["reflect", "gepa", "mipro", "simba", "bootstrap"]
WIDEST = 4.0  # levels between the ends of the scale


FEWEST, FEW_SHOT, GOOD = 4, 3, 0.85  # questions of each half; demos of bootstrap; the score that makes an answer one
EXTRA = "MIPROv2 needs optuna: pip install 'agenticiqa[optimize]'"


class Student(dspy.Module):
    """The program for an optimizer, which may change only the predictors of the stage; an unusable answer is one."""

    def __init__(self, program: AgenticIQA, names: Collection[str], stage: Stage) -> None:
        super().__init__()
        copy: AgenticIQA = program.deepcopy()
        for question in copy.questions:  # an optimizer's own model, in DSPy's settings, would be asked in its place
            question.predictor.lm = question.models[0]
        tuned = {id(predictor) for name, predictor in copy.named_predictors() if name in names}
        for _, part in copy.named_sub_modules():
            if not any(id(each) in tuned for each in part.predictors()):
                part._compiled = True  # how DSPy marks what its optimizers shall leave alone
        self.program = FirstPlan(copy) if stage == "planning" else copy

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """The result, or a prediction without one for an unusable answer. An outage ends the run."""
        try:
            return cast(dspy.Prediction, self.program(**inputs))
        except (Unanswered, NoScore) as error:
            return dspy.Prediction(failure=str(error))
        except (dspy.LMError, UserError) as error:
            raise Stopped from error


def tuned_by_dspy(
    optimizer: str | Teleprompter,
    program: AgenticIQA,
    pool: Sequence[TuningQuestion],
    stage: Stage,
    signatures: Mapping[str, type[dspy.Signature]],
    reflection: dspy.BaseLM | None,
    judgments: int,
    seed: int,
    workers: int,
) -> tuple[AgenticIQA, Searched]:
    """The program with what an optimizer made of the stage's predictors, and what it changed.

    Raises UserError for an optimizer that is not known, lacks its package, or finds an instruction that breaks the form
    of the answer or quotes the questions.
    """
    if len(pool) < 2 * FEWEST:
        raise UserError(f"DSPy's optimizers need {2 * FEWEST} labeled questions to tune on, these are {len(pool)}")
    student = Student(program, signatures, stage)
    asked = [
        dspy.Example(
            image=str(question.image),
            query=question.query,
            reference=str(question.reference) if question.reference else None,
            options=options_of(question),
            place=place,
        ).with_inputs("image", "query", "reference", "options")
        for place, question in enumerate(pool)
    ]
    # A validation costs its size each time; a fifth of the budget buys five of them.
    half = max(FEWEST, min(len(asked) // 2, judgments // 5))
    train, val = asked[half:], asked[:half]

    def score(gold: dspy.Example, made: dspy.Prediction) -> tuple[float, str]:
        judged = Judged(failure=made.failure) if "failure" in made else judged_of(made, {})
        return mark_of(stage, judged, pool[gold.place]), feedback(stage, [judged], [pool[gold.place]])[0]

    def metric(gold: Any, made: Any, trace: Any = None, name: Any = None, own_trace: Any = None) -> Any:
        mark, told = score(gold, made)
        if optimizer == "gepa":
            return dspy.Prediction(score=mark, feedback=told)
        return mark >= GOOD if optimizer == "bootstrap" and trace is not None else mark

    try:
        made = _compiled(optimizer, metric, student, train, val, reflection, judgments, seed, workers)
    except Stopped as stopped:
        raise stopped.__cause__ or stopped from None
    return _taken_over(program, made, signatures, pool)


def mark_of(stage: Stage, judged: Judged, question: TuningQuestion) -> float:
    """The mark of one answer, in [0, 1]: of a rating how near the fused score is to the opinion."""
    if stage in ("scoring", "all"):
        return 0.0 if judged.fused is None else 1 - abs(judged.fused - (question.target or 0.0)) / WIDEST
    return marks(stage, [judged], [question])[0]


def _compiled(
    optimizer: str | Teleprompter,
    metric: Any,
    student: Student,
    train: list[dspy.Example],
    val: list[dspy.Example],
    reflection: dspy.BaseLM | None,
    judgments: int,
    seed: int,
    workers: int,
) -> Any:
    """The student as the optimizer leaves it."""
    if isinstance(optimizer, Teleprompter):
        return optimizer.compile(student, trainset=[*train, *val])
    if optimizer == "bootstrap":
        bootstrap = dspy.BootstrapFewShot(metric, max_bootstrapped_demos=FEW_SHOT, max_labeled_demos=0)
        return bootstrap.compile(student, trainset=train[: max(judgments, 1)])
    if reflection is None:
        raise UserError(f"{optimizer} asks a model for instructions: give one as reflection")
    if optimizer == "gepa":
        gepa = dspy.GEPA(
            metric,
            max_metric_calls=judgments,
            reflection_lm=reflection,
            reflection_minibatch_size=min(6, len(train)),
            num_threads=workers,
            seed=seed,
            # With its cache gepa 0.1.4 takes scores of the training questions for those of validation.
            gepa_kwargs={"cache_evaluation": False},
        )
        return gepa.compile(student, trainset=train, valset=val)
    if optimizer == "mipro":
        if find_spec("optuna") is None:
            raise UserError(EXTRA)
        trials = max(1, judgments // len(val) - 2)  # two more validations are its own
        mipro = dspy.MIPROv2(
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
        size = min(6, len(train))
        steps = max(1, judgments // (size * 2 * 3))
        simba = dspy.SIMBA(
            metric=metric, bsize=size, num_candidates=2, max_steps=steps, max_demos=0, prompt_model=reflection,
            num_threads=workers,
        )  # fmt: skip
        return simba.compile(student, trainset=[*train, *val], seed=seed)
    raise UserError(f"there is no optimizer {optimizer!r}, known are {', '.join(OPTIMIZERS)}, or an instance of DSPy's")


def _taken_over(
    program: AgenticIQA, made: Any, signatures: Mapping[str, type[dspy.Signature]], pool: Sequence[TuningQuestion]
) -> tuple[AgenticIQA, Searched]:
    """A copy of the program with the instructions and demos of an optimized student, each checked."""
    found = Searched(
        {name: signature.instructions for name, signature in signatures.items()}, ended="the optimizer ended"
    )
    before = dict(found.best)
    copy: AgenticIQA = program.deepcopy()
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
                Step(len(found.steps) + 1, 0, dict(found.best), name, taken=True, why="by the optimizer", added=added)
            )
    return copy, found
