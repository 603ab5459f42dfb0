"""The held-out comparison before and after tuning, and its decision."""

from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.optimize.before_after import compare, fitted, fused
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.programs.fusion.formula import ScoreFusion
from support.profiles import Halfway

TARGETS = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5]
QUESTIONS = [TuningQuestion(Path(f"{i}.png"), "Rate it.", f"scene {i}", target=t) for i, t in enumerate(TARGETS)]
GOOD, BAD = [1.1, 2.1, 3.1, 4.1, 4.9, 1.4], [5.0, 4.0, 3.0, 2.0, 1.0, 4.5]


def assessed(fused: list[float | None], own: list[float | None] | None = None, **more: Any) -> list[Assessed]:
    return [Assessed(expectation=x, fused=y, **more) for x, y in zip(own or [3.0] * len(fused), fused, strict=True)]


def decided(before: list[float | None], after: list[float | None]) -> tuple[bool, str]:
    """Decide on scores that are the model's own."""
    both = (assessed(scores, scores) for scores in (before, after))
    figures = compare("scoring", QUESTIONS[: len(before)], *both)
    return figures["kept"], figures["why"]


def test_both_scores_are_compared_each_with_its_n_and_intervals() -> None:
    figures = compare("scoring", QUESTIONS, assessed(BAD, GOOD), assessed(GOOD, BAD, rejected=1))
    assert (figures["images"], figures["contents"]) == (6, 6)
    own, score = figures["model"], figures["fused"]
    assert own["n"] == score["n"] == 6
    change = score["srcc"]["change"]
    assert change["low"] <= change["value"] <= change["high"]
    assert score["srcc"]["before"]["value"] < 0 < score["srcc"]["after"]["value"]
    assert own["srcc"]["change"]["value"] == -change["value"] < 0
    assert score["mean_absolute_error"]["after"]["value"] == pytest.approx(0.1)
    assert score["squared_error"]["after"] == pytest.approx((0.1 / 4) ** 2)
    assert figures["malformed"] == {"before": 0, "after": 1}


def test_the_model_alone_decides_if_the_fused_score_is_not_worse() -> None:
    assert decided(BAD, GOOD) == (True, "the probability of an improvement is 98.4 % (97.5 % is required)")
    assert compare("scoring", QUESTIONS, assessed(GOOD, BAD), assessed(GOOD, GOOD))["kept"] is True
    worse = compare("scoring", QUESTIONS, assessed(GOOD, BAD), assessed(BAD, GOOD))
    assert (worse["kept"], worse["probability"]) == (False, 63 / 64)
    assert "the SRCC of the score got worse by" in worse["why"]
    assert compare("scoring", QUESTIONS, assessed(BAD, GOOD), assessed(GOOD, GOOD))["kept"] is False, "no more shown"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (GOOD, BAD, "got worse by"),
        ([1.1, 2.1, 3.1, 4.1, 4.0, 1.4], GOOD, "the probability of an improvement is"),
        (GOOD, GOOD, "the probability of an improvement is 0.0 %"),
        (BAD, [None, *GOOD[1:]], "1 images could not be scored after tuning, 0 before"),
        (BAD[:5], GOOD[:5], "only 5 held-out scenes could be compared, and 6 are needed"),
    ],
)
def test_prompts_without_a_likely_improvement_are_not_kept(before: Any, after: Any, why: str) -> None:
    kept, said = decided(before, after)
    assert not kept
    assert why in said


def test_the_comparison_is_made_on_images_with_a_value_both_times() -> None:
    figures = compare("scoring", QUESTIONS, assessed([1, 2, 3, 4, None, 2]), assessed([1, 2, 3, 4, 5, None]))["fused"]
    assert figures["n"] == 4
    assert figures["unscored"] == {"before": 1, "after": 1}


def test_marks_of_other_stages_are_compared_by_the_share_that_is_missing() -> None:
    asked = [TuningQuestion(Path("a.png"), "Which?", f"{i}", answer="B") for i in range(12)]
    before, after = ([Assessed(final_answer="B" if i < right else "A") for i in range(12)] for right in (3, 12))
    figures = compare("answering", asked, before, after)
    assert figures["mark"]["mean_absolute_error"]["before"]["value"] == 0.75
    assert figures["mark"]["mean_absolute_error"]["after"]["value"] == 0
    assert figures["kept"] is True
    assert figures["probability"] == 1 - 2**-9, "9 of 12 questions changed"
    assert compare("answering", asked, after, before)["kept"] is False


def test_a_profile_is_fitted_to_most_of_the_ratings_and_used_for_these_alone() -> None:
    about = {"model": "vllm.m", "tools": ("T",)}
    targets = [1 + i % 5 * 0.9 for i in range(20)]
    asked = [TuningQuestion(Path("a.png"), "Rate it.", f"{i}", target=target) for i, target in enumerate(targets)]
    rated = [
        Assessed(tool=3.0 + 0.1 * (i % 3), probabilities=_at(target), expectation=target, fused=3.0, **about)
        for i, target in enumerate(targets)
    ]
    profile = fitted(asked, rated)
    assert profile is not None
    assert (profile.backend, profile.toolset, profile.labels) == ("vllm.m", ("T",), 20)
    fusion = ScoreFusion().with_profile(profile)
    assert fused(rated[4], fusion) > fused(rated[0], fusion) + 1  # type: ignore[operator]
    assert fused(Assessed(fused=2.5, tool=3.0, model="vllm.other", tools=("T",)), fusion) == 2.5
    half = Halfway().with_profile(profile)
    assert fused(rated[4], half) == (rated[4].tool + rated[4].expectation) / 2, "the rule is that of the program"
    assert fitted(asked[:9], rated[:9]) is None


def _at(level: float) -> dict[str, float]:
    low = min(int(level), 4)
    return {str(each): 0.0 for each in range(1, 6)} | {str(low): low + 1 - level, str(low + 1): level - low}
