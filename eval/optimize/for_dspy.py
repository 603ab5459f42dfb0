"""Tune the program with DSPy's own optimizers: examples of labels, a metric, and the predictors that are tuned.

::

    examples = examples_of(read_labels("labels.csv"))
    tuned = dspy.GEPA(metric, reflection_lm=lm, max_metric_calls=200).compile(freeze(program), trainset=examples)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion, assessed_of, options_of, questions_of
from agenticiqa.eval.optimize.objectives import feedback, mark_of
from agenticiqa.eval.optimize.trial import Trial
from agenticiqa.eval.questions.task import Item
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.saving import all_predictors

LABELED: dict[str, Stage] = {"mos": "scoring", "answer": "answering", "distortion": "detection"}
RATED = ("executor.detect", "executor.analyze", "summarizer.score")


def examples_of(
    labels: Sequence[LabeledImage | Item], stage: Stage = "scoring", scale: MosScale | None = None
) -> list[dspy.Example]:
    """Convert labels to examples for DSPy, with the inputs of the program and one label.

    Args:
        labels: Images with MOS, images with named distortions, or questions with answers, as ``stage`` needs.
        stage: The stage to tune, as in ``optimize``.
        scale: The scale of the MOS; by default inferred from their range.

    Returns:
        Examples with the inputs ``image``, ``query`` and, if there are any, ``reference`` and ``options``. The label is
        ``mos`` (1 to 5), ``answer`` (a letter) or ``distortion``.

    Raises:
        UserError: The labels have none for this stage.
    """
    return [example_of(question) for question in questions_of(labels, stage, scale)]


def example_of(question: TuningQuestion) -> dspy.Example:
    """Return one question as an example."""
    inputs: dict[str, Any] = {"image": str(question.image), "query": question.query}
    if question.reference:
        inputs["reference"] = str(question.reference)
    if options := options_of(question):
        inputs["options"] = options
    labels = {"mos": question.target, "answer": question.answer, "distortion": question.distortion}
    known = {name: label for name, label in labels.items() if label is not None}
    return dspy.Example(inputs | known).with_inputs(*inputs)


def metric(
    gold: dspy.Example, pred: dspy.Prediction | None, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
) -> float | dspy.Prediction:
    """Compute the mark of one result, for any optimizer of DSPy and for ``dspy.Evaluate``.

    Args:
        gold: The example, with one of the labels of ``examples_of``.
        pred: The result of the program, or ``None`` if it raised an error.
        trace: Not used, as well as ``pred_trace``; DSPy passes them.
        pred_name: The predictor that GEPA tunes.
        pred_trace: See ``trace``.

    Returns:
        A number in 0..1: the closeness of score and MOS, whether the answer is right, or F1 of the distortion. If
        ``pred_name`` is given, a prediction with this ``score`` and ``feedback`` in words.

    Raises:
        UserError: The example has no label, or a MOS outside 1 to 5.
    """
    stage = next((stage for name, stage in LABELED.items() if name in gold), None)
    if stage is None:
        raise UserError(f"the example has no label: expected {', '.join(LABELED)}, as examples_of gives them")
    if stage == "scoring" and not 1 <= gold.mos <= 5:
        raise UserError(f"the example has the MOS {gold.mos:g}, expected 1 to 5: examples_of converts the labels")
    labels = {"target": gold.get("mos"), "answer": gold.get("answer"), "distortion": gold.get("distortion")}
    question = TuningQuestion(Path(), "", "", **labels)
    failure = failure_of(pred)
    assessed = Assessed(failure=failure) if failure else assessed_of(pred, {})
    mark = mark_of(stage, assessed, question)
    if pred_name is None:
        return mark
    return dspy.Prediction(score=mark, feedback=feedback(stage, [assessed], [question])[0])


def failure_of(pred: dspy.Prediction | None) -> str:
    """Return why there is no result; empty if there is one."""
    return "the program raised an error" if pred is None else str(pred.get("failure", ""))


def freeze(program: AgenticIQA, except_: str | Sequence[str] = RATED) -> AgenticIQA:
    """Freeze the prompts of a copy of a program, except those that an optimizer shall tune.

    An optimizer spends its budget on every predictor that it sees. GEPA logs an error for one that no example uses.
    The copy counts failed examples (``trial.Trial``): if all fail because the model cannot be asked, it ends the
    optimizer with ``EveryExampleFailed``, and if all fail for any reason, its ``save`` raises a UserError.

    Args:
        program: The program, which is not changed.
        except_: The beginnings of the names of the predictors to tune (see ``program.named_predictors()``); by default
            those that a rating uses.

    Returns:
        The copy. Its ``save`` writes only the prompts that are not frozen.

    Raises:
        UserError: The program has no such predictor.
    """
    copied = frozen_copy(program, except_)
    copied.trial = Trial()
    return copied


def frozen_copy(program: AgenticIQA, except_: str | Sequence[str]) -> AgenticIQA:
    """Return the copy of ``freeze``, which does not count failed examples."""
    copied: AgenticIQA = program.deepcopy()
    names = [*all_predictors(copied)]
    tuned = (except_,) if isinstance(except_, str) else tuple(except_)
    copied.frozen = frozenset(name for name in names if not name.startswith(tuned))
    if len(copied.frozen) == len(names):
        raise UserError(
            f"no predictor of the program has a name that begins with {' or '.join(tuned)}; it has {', '.join(names)}"
        )
    return copied
