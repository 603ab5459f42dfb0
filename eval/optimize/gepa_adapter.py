"""The program as GEPA needs it: examples with a target, a score for each answer, and feedback in words."""

from typing import Any

import dspy

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.stages.ask import harmless
from agenticiqa.signatures.types import ExecutorOutput

CLOSE = 0.25  # on the scale of 1 to 5: a smaller error is not criticized


class Stopped(BaseException):
    """Ends the whole run: a model outage, or an error of ours; ``__cause__`` is what happened.

    DSPy and GEPA count any Exception as a bad answer, log it and go on, so that an outage would lower the score of a
    prompt. This is no Exception, so it reaches the caller of GEPA.
    """


class GepaAdapter(dspy.Module):
    """The program as GEPA runs it: an unusable answer becomes a prediction without a score, not an exception.

    Returns a ``dspy.Prediction`` of ``quality_score`` (``None`` without a usable answer), ``evidence``, ``expectation``
    (the expected level), ``rejected_answers`` by stage and ``failure``. Raises Stopped for every other error. Images
    are not in it, because an optimizer keeps what it gets.
    """

    def __init__(self, program: AgenticIQA) -> None:
        super().__init__()
        self.program = program

    def forward(self, image: str, query: str, reference: str | None = None) -> dspy.Prediction:
        """Judge one image."""
        try:
            result = self.program(image=image, query=query, reference=reference)
        except (Unanswered, NoScore) as error:
            return dspy.Prediction(
                quality_score=None, evidence=None, expectation=None, rejected_answers={}, failure=str(error)
            )
        except Exception as error:
            raise Stopped from error
        probabilities = result.summarizer_result.quality_probs or {}
        return dspy.Prediction(
            quality_score=result.quality_score,
            evidence=result.executor_evidence,
            expectation=sum(int(level) * p for level, p in probabilities.items()) or None,
            rejected_answers=result.rejected_answers,
            failure=None if result.quality_score is not None else result.quality_reasoning,
        )


def example(label: LabeledImage, query: str, scale: MosScale) -> dspy.Example:
    """One label as a DSPy example; ``target`` is the opinion score on 1 to 5."""
    reference = str(label.reference) if label.reference else None
    target = scale.to_1_5(label.mos)
    return dspy.Example(image=str(label.image), query=query, reference=reference, target=target).with_inputs(
        "image", "query", "reference"
    )


def score_with_feedback(
    gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
) -> dspy.Prediction:
    """GEPA's metric: ``score``, 1 - |answer - target| / 4 or 0 without an answer, and ``feedback`` in words."""
    if pred.quality_score is None:
        return dspy.Prediction(score=0.0, feedback=harmless(f"There was no usable answer: {pred.failure}"))
    score = 1 - abs(pred.quality_score - gold.target) / 4
    return dspy.Prediction(score=score, feedback=harmless(" ".join(_feedback(gold.target, pred))))


def _feedback(target: float, pred: dspy.Prediction) -> list[str]:
    error = pred.quality_score - target
    verdict = "close" if abs(error) < CLOSE else f"{abs(error):.1f} too {'kind' if error > 0 else 'harsh'}"
    sentences = [
        f"On the scale of 1 to 5 observers rate it {target:.1f} and the answer was {pred.quality_score:.1f}: {verdict}."
    ]
    evidence: ExecutorOutput = pred.evidence
    if evidence.overall_mean is not None:
        sentences.append(f"The tools' mean was {evidence.overall_mean:.1f}.")
    if pred.expectation is not None:
        sentences.append(f"The level probabilities had a mean of {pred.expectation:.1f}.")
    analyzed = [
        f"{row.type} in {region} ({row.severity})"
        for region, rows in (evidence.distortion_analysis or {}).items()
        for row in rows
    ]
    if analyzed:
        sentences.append(f"The analysis said: {', '.join(analyzed)}.")
    sentences += [f"{stage} gave no result: {why}." for stage, why in evidence.failures.items()]
    rejected = [f"{stage}: {reason}" for stage, reasons in pred.rejected_answers.items() for reason in reasons]
    if rejected:
        sentences.append(f"Rejected attempts: {'; '.join(rejected)}.")
    return sentences
