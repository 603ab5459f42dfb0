"""The score and the feedback that GEPA gets for an answer, and which errors end its run."""

from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.optimize.gepa_adapter import GepaAdapter, Stopped, example, score_with_feedback
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ImageError, NoScore, UserError
from agenticiqa.signatures.types import ExecutorOutput
from support.distortion_levels import scene

LABEL = LabeledImage("a.png", Path("a.png"), Path("r.png"), 75, None, None, None, None, None, "r.png")
EXAMPLE = example(LABEL, "Rate it.", MosScale(0, 100))


def answer(score: float | None, **more: Any) -> dspy.Prediction:
    fields = {"evidence": ExecutorOutput(), "expectation": None, "rejected_answers": {}, "failure": None, **more}
    return dspy.Prediction(quality_score=score, **fields)


class Failing:
    """A program that ends in an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, **inputs: Any) -> dspy.Prediction:
        raise self.error


def test_a_label_becomes_an_example_with_its_target_on_1_to_5() -> None:
    assert EXAMPLE.inputs().toDict() == {"image": "a.png", "query": "Rate it.", "reference": "r.png"}
    assert EXAMPLE.target == 4


@pytest.mark.parametrize(
    ("given", "score", "verdict"),
    [(4.0, 1, "close"), (4.2, 0.95, "close"), (5.0, 0.75, "1.0 too kind"), (1.0, 0.25, "3.0 too harsh")],
)
def test_the_score_falls_with_the_distance_and_the_feedback_names_its_direction(
    given: float, score: float, verdict: str
) -> None:
    found = score_with_feedback(EXAMPLE, answer(given))
    assert found.score == pytest.approx(score)
    assert found.feedback == f"On the scale of 1 to 5 observers rate it 4.0 and the answer was {given:.1f}: {verdict}."


def test_the_feedback_repeats_the_evidence_and_what_went_wrong() -> None:
    evidence = ExecutorOutput.model_validate(
        {
            "quality_scores": {"Global": {"Blurs": ["NIQE", 2.25]}},
            "distortion_analysis": {"sky": [{"type": "Noise", "severity": "severe", "explanation": "Grain."}]},
            "failures": {"tool_selection": "no tool fits"},
        }
    )
    pred = answer(3.0, evidence=evidence, expectation=3.5, rejected_answers={"scoring": ["no JSON"]})
    feedback = score_with_feedback(EXAMPLE, pred).feedback
    for part in ("mean was 2.2", "mean of 3.5", "Noise in sky (severe)", "tool_selection gave no result", "no JSON"):
        assert part in feedback


def test_a_judged_image_keeps_what_the_feedback_needs_and_no_image() -> None:
    result = AgenticIQA.from_config(Config())
    pred = GepaAdapter(result)(image=scene(64, 80), query="Rate the quality.")
    levels = result(scene(64, 80), "Rate the quality.").summarizer_result.quality_probs
    assert 1 <= pred.expectation <= 5
    assert pred.expectation == pytest.approx(sum(level * levels[str(level)] for level in range(1, 6)))
    assert set(pred.keys()) == {"quality_score", "evidence", "expectation", "rejected_answers", "failure"}
    assert (pred.rejected_answers, pred.failure) == ({}, None)


def test_no_usable_answer_scores_0_and_says_why() -> None:
    found = score_with_feedback(EXAMPLE, answer(None, failure="no JSON"))
    assert (found.score, found.feedback) == (0, "There was no usable answer: no JSON")


def test_an_unusable_answer_is_a_prediction_and_every_other_error_ends_the_run() -> None:
    pred = GepaAdapter(Failing(NoScore("neither tools nor levels")))(**EXAMPLE.inputs())  # type: ignore[arg-type]
    assert (pred.quality_score, pred.failure) == (None, "neither tools nor levels")
    for error in (UserError("no such tool"), ImageError("broken"), dspy.LMError("gone"), KeyError("a bug")):
        with pytest.raises(Stopped) as caught:
            GepaAdapter(Failing(error))(**EXAMPLE.inputs())  # type: ignore[arg-type]
        assert caught.value.__cause__ is error
