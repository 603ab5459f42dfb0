"""The stored fields of an assessed image, the errors that end the run, and the predictors that questions reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.optimize.items import (
    ENOUGH_COMPARED,
    Assessed,
    TuningQuestion,
    questions_of,
    rating,
    split_by_content,
    unused,
)
from agenticiqa.eval.optimize.measurements import Measurements, unreached
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.results_file import ResultsFile
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


def judge(program: AgenticIQA, questions: list[TuningQuestion], workers: int = 1) -> list[Assessed]:
    return Measurements("scoring", workers).assess(program, questions)


def test_a_result_is_reduced_to_what_tuning_needs(questions: list[Any]) -> None:
    program = AgenticIQA.offline()
    (one, *_) = judge(program, questions)
    result = program(questions[0].image)
    levels = result.summarizer_result.quality_probs
    assert one.expectation == pytest.approx(sum(level * levels[str(level)] for level in range(1, 6)))
    assert (one.fused, one.failure, one.answered) == (result.quality_score, None, ())
    assert one.tool == result.executor_evidence.overall_mean
    assert one.tools == result.executor_evidence.overall_tools


def test_measurements_are_kept_and_not_repeated(questions: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "measured.jsonl"
    with ResultsFile(file) as kept:
        first = Measurements("scoring", 2, kept)
        assessed = first.assess(AgenticIQA.offline(), [questions[0], questions[0], questions[2]])
    assert assessed[0] == assessed[1] != assessed[2]
    assert first.fresh == 2
    with file.open("a") as broken:
        broken.write('{"name": "of a run that was killed')
    with ResultsFile(file) as kept:
        again = Measurements("scoring", 2, kept)
        assert again.assess(AgenticIQA.offline(), questions[:1]) == assessed[:1]
    assert again.fresh == 0


def test_questions_are_unused_if_no_image_of_their_scene_was_used_and_enough_are_taken(make_labels: MakeLabels) -> None:
    pool = questions_of(read_labels(make_labels(scenes=5)), "scoring")
    more = unused(pool, [0, len(pool) - 1], held_out=10)
    scenes = {question.content for question in pool} - {pool[0].content, pool[-1].content}
    assert {question.content for question in more} == scenes
    assert len(unused(pool, [], held_out=ENOUGH_COMPARED - 2)) == 2
    assert unused(pool, [], held_out=ENOUGH_COMPARED + 1) == []


def test_contents_are_split_whole_and_the_same_for_a_seed(make_labels: MakeLabels) -> None:
    rows = [
        rating(label, MosScale(10, 90)) for label in read_labels(make_labels(scenes=6, levels=(0, 4), references=True))
    ]
    pool, held_out = split_by_content(rows, held_out=0.3, seed=1)
    assert len(pool) == 8
    assert len(held_out) == 4
    assert not {row.content for row in pool} & {row.content for row in held_out}
    assert split_by_content(rows, held_out=0.3, seed=1) == (pool, held_out)
    assert any(split_by_content(rows, held_out=0.3, seed=seed) != (pool, held_out) for seed in (2, 3, 4))
    for share, why in ((1.5, "between 0 and 1"), (0.3, "at least 2 are needed")):
        with pytest.raises(UserError, match=why):
            split_by_content(rows if share > 1 else rows[:2], held_out=share, seed=1)


@pytest.mark.parametrize("error", [NoScore("nothing to go by"), Unanswered("scoring", ["no JSON"], "", None)])
def test_an_unusable_answer_is_a_failure_in_its_place(
    questions: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    best, none, worst = judge(failing(monkeypatch, error), questions)
    assert (none.failure, none.fused) == (str(error), None)
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
        judge(failing(monkeypatch, error), questions)


PLANNER, DETECTOR, SCORER = "planner.ask.predict", "executor.detect.ask.predict", "summarizer.score.ask.predict"


def skipped(*first_pass: Assessed) -> dict[str, str]:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    return unreached(program, [PLANNER, DETECTOR, SCORER], first_pass)


def test_predictors_without_an_answer_are_skipped_with_the_reason() -> None:
    first = Assessed(answered=(SCORER,), asked=("planner", "scoring"))
    reasons = skipped(first, Assessed(failure="no JSON"))
    assert set(reasons) == {PLANNER, DETECTOR}
    assert "no valid answer" in reasons[PLANNER]
    assert "no request for the 2 images" in reasons[DETECTOR]


def test_predictors_with_one_answer_are_tuned() -> None:
    assert skipped(Assessed(answered=(SCORER, PLANNER)), Assessed(answered=(DETECTOR,))) == {}


def test_a_first_pass_without_any_answer_skips_nothing() -> None:
    assert skipped(Assessed(failure="no JSON")) == {}
