"""What is kept of a judged image, which errors end the run, and which predictors the questions reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import MosScale, read_labels
from agenticiqa.eval.optimize.judging import Judged, judge, model_rates, rating, unreached
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ImageError, NoScore, Unanswered, Unforeseen, UserError

MakeLabels = Callable[..., Path]


@pytest.fixture
def questions(make_labels: MakeLabels) -> list[Any]:
    return [rating(label, MosScale(10, 90)) for label in read_labels(make_labels(scenes=1, levels=(0, 1, 2)))]


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> AgenticIQA:
    """The offline program, failing for one image."""
    forward = AgenticIQA.forward

    def sometimes(self: AgenticIQA, image: Path, *args: object, **kwargs: object) -> dspy.Prediction:
        if Path(image).name == "scene0_1.png":
            raise error
        return forward(self, image, *args, **kwargs)

    monkeypatch.setattr(AgenticIQA, "forward", sometimes)
    return AgenticIQA.offline()


def test_a_label_becomes_a_question_with_its_target_on_1_to_5(make_labels: MakeLabels) -> None:
    (label,) = read_labels(make_labels(scenes=1, levels=(1,), references=True))
    question = rating(label, MosScale(10, 90))
    assert question.target == 4
    assert (question.image, question.reference, question.content) == (label.image, label.reference, "scene0.png")


def test_a_result_is_reduced_to_what_tuning_needs(questions: list[Any]) -> None:
    program = AgenticIQA.offline()
    assert not model_rates(program)
    (one, *_) = judge(program, questions, workers=1)
    result = program(questions[0].image)
    levels = result.summarizer_result.quality_probs
    assert one.expectation == pytest.approx(sum(level * levels[str(level)] for level in range(1, 6)))
    assert (one.fused, one.failure, one.answered) == (result.quality_score, None, frozenset())
    assert one.evidence is not None
    assert one.evidence.overall_scores == result.executor_evidence.overall_scores


def test_the_same_question_twice_is_judged_twice(questions: list[Any]) -> None:
    first, again, other = judge(AgenticIQA.offline(), [questions[0], questions[0], questions[2]], workers=2)
    assert first.fused == again.fused != other.fused


@pytest.mark.parametrize("error", [NoScore("nothing to go by"), Unanswered("scoring", ["no JSON"], "", None)])
def test_an_unusable_answer_is_a_failure_in_its_place(
    questions: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    best, none, worst = judge(failing(monkeypatch, error), questions, workers=1)
    assert none == Judged(failure=str(error))
    assert 1 <= worst.fused < best.fused <= 5  # type: ignore[operator]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (UserError("no such tool"), UserError),
        (ImageError("broken"), ImageError),
        (dspy.LMError("gone"), dspy.LMError),
        (KeyError("x"), Unforeseen),
    ],
)
def test_every_other_error_ends_the_run(
    questions: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        judge(failing(monkeypatch, error), questions, workers=1)


PLANNER, DETECTOR, SCORER = "planner.ask.predict", "executor.detect.ask.predict", "summarizer.score.ask.predict"


def skipped(*first_pass: Judged) -> dict[str, str]:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    return unreached(program, [PLANNER, DETECTOR, SCORER], first_pass)


def test_what_never_answered_is_skipped_with_its_reason() -> None:
    first = Judged(answered=frozenset({SCORER}), asked=frozenset({"planner", "scoring"}))
    reasons = skipped(first, Judged(failure="no JSON"))
    assert set(reasons) == {PLANNER, DETECTOR}
    assert "none was valid" in reasons[PLANNER]
    assert "never asked about the 2 images" in reasons[DETECTOR]


def test_what_answered_once_is_tuned() -> None:
    assert skipped(Judged(answered=frozenset({SCORER, PLANNER})), Judged(answered=frozenset({DETECTOR}))) == {}


def test_a_first_pass_without_any_answer_skips_nothing() -> None:
    assert skipped(Judged(failure="no JSON")) == {}
