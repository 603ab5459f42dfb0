"""The held-out comparison before and after tuning, and what it decides."""

from pathlib import Path

import pytest

from agenticiqa.eval.optimize.comparison import compare
from agenticiqa.eval.optimize.judging import Judged, TuningQuestion

TARGETS = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5]
QUESTIONS = [TuningQuestion(Path(f"{i}.png"), "Rate it.", f"scene {i}", target=t) for i, t in enumerate(TARGETS)]
GOOD, BAD = [1.1, 2.1, 3.1, 4.1, 4.9, 1.4], [5.0, 4.0, 3.0, 2.0, 1.0, 4.5]


def judged(own: list[float | None], fused: list[float | None] | None = None) -> list[Judged]:
    return [Judged(expectation=x, fused=y) for x, y in zip(own, fused or [3.0] * len(own), strict=True)]


def test_both_scores_are_compared_each_with_its_n_and_intervals() -> None:
    figures = compare(QUESTIONS, judged(BAD, GOOD), judged(GOOD, BAD))
    assert (figures["images"], figures["contents"]) == (6, 6)
    own, fused = figures["model"], figures["fused"]
    assert own["n"] == fused["n"] == 6
    change = own["srcc"]["change"]
    assert change["low"] <= change["value"] <= change["high"]
    assert own["srcc"]["before"]["value"] < 0 < own["srcc"]["after"]["value"]
    assert fused["srcc"]["change"]["value"] == -own["srcc"]["change"]["value"] < 0
    assert own["mean_absolute_error"]["after"]["value"] == pytest.approx(0.1)


def test_the_models_own_order_decides_not_the_fused_one() -> None:
    assert compare(QUESTIONS, judged(BAD, GOOD), judged(GOOD, BAD))["kept"] is True
    worse = compare(QUESTIONS, judged(GOOD, BAD), judged(BAD, GOOD))
    assert (worse["kept"], worse["decided_by"]) == (False, "model")
    assert "fell by 2.000" in worse["why"]


def test_where_no_model_rates_the_fused_score_decides() -> None:
    figures = compare(QUESTIONS, judged(GOOD, BAD), judged(BAD, GOOD), by_model=False)
    assert (figures["kept"], figures["decided_by"]) == (True, "fused")
    assert "model" not in figures


def test_a_rise_that_is_not_shown_is_kept_and_said() -> None:
    before = [1.1, 2.1, 3.1, 4.1, 4.0, 1.4]
    figures = compare(QUESTIONS, judged(before), judged(GOOD))
    assert figures["kept"] is True
    assert "may not have risen" in figures["why"]
    assert compare(QUESTIONS, judged(BAD), judged(GOOD))["why"] == "the SRCC rose"


def test_the_comparison_is_made_on_images_with_a_value_both_times() -> None:
    before = judged([1, 2, 3, 4, None, 2])
    after = judged([1, 2, 3, 4, 5, None])
    figures = compare(QUESTIONS, before, after)["model"]
    assert figures["n"] == 4
    assert figures["missing"] == {"before": 1, "after": 1}


@pytest.mark.parametrize(
    ("after", "why"), [([None, *GOOD[1:]], "1 images have no value, 0 before"), ([3.0] * 6, "is undefined")]
)
def test_lost_answers_and_a_constant_are_no_improvement(after: list[float | None], why: str) -> None:
    figures = compare(QUESTIONS, judged(BAD), judged(after))
    assert figures["kept"] is False
    assert why in figures["why"]


def test_too_few_images_do_not_decide() -> None:
    figures = compare(QUESTIONS[:2], judged([1, 2]), judged([2, 1]))
    assert figures["kept"] is True
    assert "do not decide" in figures["why"]
