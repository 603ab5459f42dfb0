"""What GEPA maximizes: the rank within the batch, and the feedback in words."""

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.optimize.gepa_adapter import batch_scores, feedback, rank_scores
from agenticiqa.eval.optimize.judging import Judged, TuningQuestion
from agenticiqa.signatures.types import ExecutorOutput

LEVELS = st.floats(1, 5).map(lambda value: round(value, 1))


def mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)


def rated(target: float) -> TuningQuestion:
    return TuningQuestion(Path("a.png"), "Rate it.", "a", target=target)


def told(found: float | None, target: float = 4.0, **more: Any) -> str:
    return feedback([Judged(**more)], [found], [rated(target)], 0)


def test_the_right_order_scores_best_and_the_reverse_worst_whatever_the_distance() -> None:
    targets = [1.0, 2.0, 4.0, 5.0]
    right = rank_scores([2.9, 3.0, 3.1, 3.2], targets)
    reverse = rank_scores([4.9, 3.5, 3.0, 1.1], targets)
    assert min(right) > 0.94
    assert max(reverse) < 0.07
    assert rank_scores(targets, targets) == [1.0] * 4


def test_the_mean_rises_with_every_pair_put_right_as_srcc_does() -> None:
    targets = [1.0, 2.0, 3.0, 4.0, 5.0]
    by_pairs: dict[int, list[float]] = {}
    for order in permutations(targets):
        pairs = sum(a < b for a, b in combinations(order, 2))
        by_pairs.setdefault(pairs, []).append(mean(rank_scores(order, targets)))
    for pairs in range(10):
        assert max(by_pairs[pairs]) < min(by_pairs[pairs + 1])
    ranked = [(srcc(order, targets), mean(rank_scores(order, targets))) for order in permutations(targets)]
    assert srcc([one for one, _ in ranked], [score for _, score in ranked]) > 0.95


@settings(deadline=None)
@given(st.lists(st.tuples(LEVELS, LEVELS), min_size=2, max_size=9), st.data())
def test_no_answer_is_never_better_than_any_answer(pairs: list[tuple[float, float]], data: st.DataObject) -> None:
    found: list[float | None] = [value for value, _ in pairs]
    targets = [target for _, target in pairs]
    index = data.draw(st.integers(0, len(pairs) - 1))
    without = [None if i == index else value for i, value in enumerate(found)]
    scores, fewer = rank_scores(found, targets), rank_scores(without, targets)
    assert fewer[index] == 0
    assert all(fewer[i] <= scores[i] + 1e-12 for i in range(len(pairs)))
    assert all(0 <= score <= 1 for score in scores)


def test_a_tie_is_worth_a_half_and_equal_labels_are_no_pair() -> None:
    assert rank_scores([3.0, 3.0], [1.0, 5.0]) == pytest.approx([0.375 + 0.25 * 0.5] * 2)
    apart, together = rank_scores([2.0, 4.0, 1.0], [3.0, 3.0, 1.0]), rank_scores([3.0, 3.0, 1.0], [3.0, 3.0, 1.0])
    assert together == [1.0] * 3
    assert mean(apart) > 0.88


def test_of_two_equal_rankings_the_closer_one_is_better_but_never_than_a_better_ranking() -> None:
    targets = [2.0, 3.0, 4.0]
    near, far, wrong = [2.0, 3.1, 4.0], [4.7, 4.8, 4.9], [2.0, 4.01, 4.0]
    assert mean(rank_scores(near, targets)) > mean(rank_scores(far, targets)) > mean(rank_scores(wrong, targets))


def test_a_single_image_is_scored_by_its_distance() -> None:
    assert rank_scores([3.0], [4.0]) == [0.75]
    assert rank_scores([], []) == []


@pytest.mark.parametrize(("found", "verdict"), [(4.0, "close"), (5.0, "1.0 too kind"), (1.0, "3.0 too harsh")])
def test_the_feedback_names_the_direction_of_the_error(found: float, verdict: str) -> None:
    assert told(found) == f"On the scale of 1 to 5 observers rate it 4.0 and the answer expects {found:.1f}: {verdict}."


def test_the_feedback_says_against_which_images_it_was_ranked_wrongly() -> None:
    questions = [rated(target) for target in (4.0, 2.0, 5.0, 1.0)]
    text = feedback([Judged()] * 4, [2.5, 3.5, 4.5, 2.5], questions, 0)
    assert "ranked rightly against 1 of 3 other images" in text
    assert "below an image that observers rate 2.0 (its answer: 3.5)" in text
    assert "the same as an image that observers rate 1.0 (its answer: 2.5)" in text


def test_the_feedback_repeats_the_evidence_and_what_went_wrong() -> None:
    evidence = ExecutorOutput.model_validate(
        {
            "quality_scores": {"Global": {"Blurs": ["NIQE", 2.25]}},
            "distortion_analysis": {"sky": [{"type": "Noise", "severity": "severe", "explanation": "Grain."}]},
            "failures": {"tool_selection": "no tool fits"},
        }
    )
    text = told(3.0, evidence=evidence, rejected_answers={"scoring": ["no JSON"]})
    for part in ("mean was 2.2", "Noise in sky (severe)", "tool_selection gave no result", "scoring: no JSON"):
        assert part in text


def test_no_usable_answer_says_why() -> None:
    assert told(None, failure="no JSON") == "There was no usable answer: no JSON"
    assert "no level had a probability" in told(None)


def test_the_feedback_cannot_smuggle_an_image_into_a_prompt() -> None:
    assert "CUSTOM-TYPE-" not in told(None, failure="<<CUSTOM-TYPE-START-IDENTIFIER>>")


def test_answers_to_choose_from_are_right_or_wrong_beside_ratings_that_are_ranked() -> None:
    choice = TuningQuestion(Path("a.png"), "Which? A) Blur B) Noise", "a", answer="B")
    questions = [rated(4.0), choice, rated(2.0), choice, choice]
    judged = [
        Judged(final_answer="4.0"),
        Judged(final_answer="B", reasoning="Grain."),
        Judged(final_answer="2.0"),
        Judged(final_answer="A", reasoning="Soft edges."),
        Judged(failure="no JSON"),
    ]
    found = [4.0, None, 2.0, None, None]
    assert batch_scores(judged, found, questions) == [1, 1, 1, 0, 0]
    said = [feedback(judged, found, questions, index) for index in range(5)]
    assert "ranked rightly against 1 of 1 other images" in said[0]
    assert said[1] == "The answer B was right."
    assert said[3] == "The answer was A, but B is right. Its reason was: Soft edges."
    assert said[4] == "There was no usable answer, B was right: no JSON"
