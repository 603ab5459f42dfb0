"""What an optimizer is shown of the program: examples with a target, a score for each answer, and words about it."""

from typing import Any

import dspy

from agenticiqa.eval.datasets import Labelled
from agenticiqa.eval.optimize.splits import HIGHEST, LOWEST, Scale
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.stages.ask import harmless
from agenticiqa.signatures.types import ExecutorOutput

CLOSE = 0.25  # on the scale of 1 to 5: nearer than this is not worth a complaint


class Stopped(BaseException):
    """What has to end the whole run: an outage of a model, or a fault of ours.

    DSPy and GEPA count any Exception as a bad answer, log it and go on, so that prompts would be judged by the weather
    on the network. This is no Exception, so it reaches whoever started the run; ``__cause__`` is what happened.
    """


class Examinee(dspy.Module):
    """The program as an optimizer runs it: no usable answer becomes a prediction without a score, never an exception.

    Gives a ``dspy.Prediction`` of ``quality_score`` (``None`` without a usable answer), ``evidence``, ``expectation``
    (the mean of the level probabilities), ``retries`` and ``failure``. Raises Stopped for everything else. The images
    stay out of it: an optimizer keeps what it is given.
    """

    def __init__(self, program: AgenticIQA) -> None:
        super().__init__()
        self.program = program

    def forward(self, image: str, query: str, reference: str | None = None) -> dspy.Prediction:
        """Judge one image."""
        try:
            result = self.program(image=image, query=query, reference=reference)
        except (Unanswered, NoScore) as error:
            return dspy.Prediction(quality_score=None, evidence=None, expectation=None, retries={}, failure=str(error))
        except Exception as error:
            raise Stopped from error
        summary = result.summarizer_result
        probabilities = summary.quality_probs or {}
        return dspy.Prediction(
            quality_score=result.quality_score,
            evidence=result.executor_evidence,
            expectation=sum(int(level) * p for level, p in probabilities.items()) or None,
            retries=result.retries,
            failure=None if result.quality_score is not None else result.quality_reasoning,
        )


def example(label: Labelled, query: str, scale: Scale) -> dspy.Example:
    """One label as DSPy has examples; ``target`` is the opinion score on 1 to 5."""
    reference = str(label.reference) if label.reference else None
    target = scale.to_levels(label.mos)
    return dspy.Example(image=str(label.image), query=query, reference=reference, target=target).with_inputs(
        "image", "query", "reference"
    )


def closeness(
    gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
) -> dspy.Prediction:
    """GEPA's metric when scoring: ``score``, 1 - |answer - target| / 4 or 0 without an answer, and ``feedback``."""
    if pred.quality_score is None:
        return dspy.Prediction(score=0.0, feedback=harmless(f"There was no usable answer: {pred.failure}"))
    score = 1 - abs(pred.quality_score - gold.target) / (HIGHEST - LOWEST)
    return dspy.Prediction(score=score, feedback=harmless(" ".join(_remarks(gold.target, pred))))


def _remarks(target: float, pred: dspy.Prediction) -> list[str]:
    error = pred.quality_score - target
    verdict = "close" if abs(error) < CLOSE else f"{abs(error):.1f} too {'kind' if error > 0 else 'harsh'}"
    said = [
        f"On the scale of 1 to 5 observers rate it {target:.1f} and the answer was {pred.quality_score:.1f}: {verdict}."
    ]
    evidence: ExecutorOutput = pred.evidence
    if evidence.overall_mean is not None:
        said.append(f"The tools' mean was {evidence.overall_mean:.1f}.")
    if pred.expectation is not None:
        said.append(f"The level probabilities had a mean of {pred.expectation:.1f}.")
    seen = [
        f"{row.type} in {region} ({row.severity})"
        for region, rows in (evidence.distortion_analysis or {}).items()
        for row in rows
    ]
    if seen:
        said.append(f"The analysis said: {', '.join(seen)}.")
    said += [f"{stage} gave no result: {why}." for stage, why in evidence.failures.items()]
    rejected = [f"{stage}: {reason}" for stage, reasons in pred.retries.items() for reason in reasons]
    if rejected:
        said.append(f"Rejected attempts: {'; '.join(rejected)}.")
    return said
