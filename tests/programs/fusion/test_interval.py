"""The fused score of one image: its interval, the score of the tools alone, and the explanation."""

import math
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion, offline_fusion
from agenticiqa.programs.fusion.interval import (
    MOST_ABOVE,
    NORMAL_QUANTILES,
    UNKNOWN_ERROR,
    FusedScore,
    fused_score,
    score_interval,
)
from agenticiqa.signatures.types import FROM_REJECTED, DamagedPart, ExecutorOutput, ProbabilitySource, ToolCall
from agenticiqa.signatures.vocabulary import ImageKind
from support.profiles import TYPICAL

PHOTO = Path(__file__).parents[3] / "examples/coffee_jpeg.jpg"
GOOD = {1: 0.0, 2: 0.02, 3: 0.08, 4: 0.5, 5: 0.4}
BAD = {1: 0.9, 2: 0.1, 3: 0.0, 4: 0.0, 5: 0.0}
FITTED = ScoreFusion(
    profile=TYPICAL.model_copy(update={"images": 100, "tool_spread": 0.7, "tool_error": 0.5, "score_error": 0.4})
)


def evidence(score: float = 4.2, spread: float | None = 0.7, tool: str = "LEARNED-IQA") -> ExecutorOutput:
    """Return evidence with one tool's score of the whole image."""
    call = ToolCall(tool=tool, region="Global", distortion="Overall", calibrated=score, spread=spread, ms=1)
    return ExecutorOutput(quality_scores={"Global": {"Overall": (tool, score)}}, tool_log=[call])


def width(fused: FusedScore, share: Any = "80") -> float:
    """Return the width of the interval."""
    low, high = fused.interval[share]
    return high - low


def test_local_damage_lowers_the_offline_score_but_not_a_models_score() -> None:
    part = DamagedPart(type="Noise", severity="severe", place="center", box=(160, 128, 352, 256), share=0.125)
    damaged = evidence().model_copy(update={"local_damage": {"Global": [part]}})
    assert fused_score(offline_fusion(), damaged, BAD, "learned", spread=0.7).score == pytest.approx(1.1)
    assert fused_score(offline_fusion(), evidence(), BAD, "learned", spread=0.7).score > 1.5
    by_model = [fused_score(default_fusion(), given, BAD, "logprobs").score for given in (damaged, evidence())]
    assert by_model[0] == by_model[1]


def test_a_model_far_from_the_tools_is_reported_with_its_influence() -> None:
    fused = fused_score(default_fusion(), evidence(), BAD, "logprobs")
    assert fused.without_model == pytest.approx(4.2, abs=0.15)
    assert fused.score < fused.without_model - 0.5
    assert fused.disagreement == pytest.approx(3.1)
    assert (
        "The model's estimate (1.1) differs strongly from the tool mean (4.2). Without the model, the score is "
        f"{fused.without_model:.1f}."
    ) in fused.how


@pytest.mark.parametrize("source", FROM_REJECTED)
@pytest.mark.parametrize("fusion", [default_fusion(), ScoreFusion(), FITTED])
def test_the_interval_of_an_incomplete_answer_is_wide(fusion: ScoreFusion, source: ProbabilitySource) -> None:
    sure = evidence(score=3.0, spread=0.2)
    assert width(fused_score(fusion, sure, GOOD, source)) >= 2 * NORMAL_QUANTILES["80"] * UNKNOWN_ERROR - 1e-9
    assert width(fused_score(fusion, sure, GOOD, "logprobs")) < width(fused_score(fusion, sure, GOOD, source))


@pytest.mark.parametrize(("p", "source"), [(GOOD, "logprobs"), (dict.fromkeys(range(1, 6), 0.2), "uniform")])
def test_a_model_near_the_tools_or_undecided_is_not_reported(p: dict[int, float], source: ProbabilitySource) -> None:
    fused = fused_score(default_fusion(), evidence(), p, source)
    assert "differs strongly" not in fused.how
    assert fused.disagreement is None
    assert fused.without_model is not None


@pytest.mark.parametrize("source", ["learned", "measurements"])
def test_offline_results_have_no_score_without_the_model(source: ProbabilitySource) -> None:
    assert fused_score(offline_fusion(), evidence(), BAD, source, spread=0.7).without_model is None


def test_the_interval_follows_the_deviation_and_ends_with_the_scale() -> None:
    assert score_interval(3.0, 0.5, 0.5)["80"] == pytest.approx((2.359, 3.641), abs=1e-3)
    assert score_interval(3.0, 0.5, 0.5)["95"] == pytest.approx((2.02, 3.98), abs=1e-3)
    assert score_interval(3.0, 0.5, 0.25)["80"] == pytest.approx((2.359, 3.32), abs=1e-3)
    assert score_interval(4.8, 1.0, 1.0) == {
        "80": pytest.approx((3.518, 5.0), abs=1e-3),
        "95": (pytest.approx(2.84), 5.0),
    }


def test_a_larger_tool_deviation_widens_the_interval_and_favors_a_fitted_model() -> None:
    for fusion in (default_fusion(), FITTED):
        sure, unsure = (fused_score(fusion, evidence(3.0, spread), GOOD, "logprobs") for spread in (0.5, 1.5))
        assert width(unsure) > width(sure)
        assert (unsure.score > sure.score) == (fusion is FITTED)


def test_the_offline_interval_follows_the_deviation_of_the_estimate() -> None:
    known = fused_score(offline_fusion(), evidence(3.0, 0.5), GOOD, "learned", spread=0.5)
    strange = fused_score(offline_fusion(), evidence(3.0, 0.5), GOOD, "learned", spread=2.0)
    assert width(known) == pytest.approx(2 * 1.2816 * 0.5)
    assert strange.interval["95"] == (1.0, 5.0)


def of_photo(score: float = 3.0, spread: float = 0.7) -> ExecutorOutput:
    """Return evidence with a score of the learned scorer, which recognized a photo."""
    given = evidence(score, spread)
    call = given.tool_log[0].model_copy(update={"image_kind": "photo"})
    return given.model_copy(update={"tool_log": [call]})


def test_the_interval_of_a_photo_reaches_less_far_above_the_score_than_below() -> None:
    usual = fused_score(offline_fusion(), of_photo(), GOOD, "learned", spread=0.7)
    assert usual.interval["80"] == pytest.approx((usual.score - 1.2816 * 0.7, usual.score + 1.2816 * MOST_ABOVE))
    sure = fused_score(offline_fusion(), of_photo(spread=0.2), GOOD, "learned", spread=0.2)
    assert width(sure) == pytest.approx(2 * 1.2816 * 0.2)


@pytest.mark.parametrize(("least_above", "above"), [(0.0, MOST_ABOVE), (0.9, 0.9)])
def test_a_reason_widens_the_interval_above_the_score_only_if_scores_may_be_too_low(
    least_above: float, above: float
) -> None:
    fused = fused_score(
        offline_fusion(), of_photo(), GOOD, "learned", spread=0.9, least_spread=0.9, least_above=least_above
    )
    assert width(fused) == pytest.approx(1.2816 * (0.9 + above))


def test_an_unmeasured_model_widens_the_interval_toward_the_score_of_the_tools() -> None:
    fair = {1: 0.0, 2: 0.2, 3: 0.6, 4: 0.2, 5: 0.0}
    near, better, worse = (fused_score(default_fusion(), evidence(3.0, 0.5), p, "logprobs") for p in (fair, GOOD, BAD))
    assert (near.score, near.without_model) == pytest.approx((3, 3), rel=0, abs=1e-12)
    assert width(near) == pytest.approx(2 * 1.2816 * 0.5)
    for fused in (better, worse):
        assert fused.without_model is not None
        change = fused.score - fused.without_model
        toward, away = 1.2816 * math.hypot(0.5, change), 1.2816 * 0.5
        ends = (fused.score - toward, fused.score + away) if change > 0 else (fused.score - away, fused.score + toward)
        assert fused.interval["80"] == pytest.approx((max(ends[0], 1.0), ends[1]))


def test_without_tools_the_score_is_the_expected_level_and_a_profile_adds_its_typical_quality() -> None:
    alone, fitted = (fused_score(fusion, ExecutorOutput(), GOOD, "logprobs") for fusion in (default_fusion(), FITTED))
    assert alone.score == pytest.approx(alone.expectation)
    assert f"Score {alone.expectation:.2f} (Good), from the expected level alone" in alone.how
    assert fitted.score < fitted.expectation
    said = "the profile's typical quality 3.20, because no tool gave a score, and an expected level of 4.28"
    assert said in fitted.how


def test_a_contradiction_widens_the_interval_of_a_fitted_profile_and_is_reported() -> None:
    profile = FITTED.profile
    assert profile is not None
    fusion = ScoreFusion(profile=profile.model_copy(update={"model_error": 0.4, "unrelated_answers": 0.05}))
    near, apart, far = (fused_score(fusion, evidence(score), GOOD, "logprobs") for score in (4.0, 2.7, 2.0))
    assert near.disagreement is None
    assert apart.disagreement == pytest.approx(4.28 - 2.7)
    assert far.disagreement == pytest.approx(4.28 - 2.0)
    assert width(apart) > 1.3 * width(near)
    assert far.without_model is not None
    assert far.score - far.without_model < 0.6
    assert "differs strongly from the tool mean" in far.how
    assert "differs strongly" not in near.how


def test_a_fitted_model_is_reported_only_if_it_is_farther_off_than_usual() -> None:
    profile = FITTED.profile
    assert profile is not None
    unsure = ScoreFusion(profile=profile.model_copy(update={"model_error": 2.0}))
    for fusion, shown in ((FITTED, True), (unsure, False)):
        assert (fused_score(fusion, evidence(3.0), GOOD, "logprobs").disagreement is not None) == shown


@pytest.mark.parametrize(
    ("fitted", "assessed", "shown"),
    [("photo", "generated", True), ("generated", "photo", True), ("photo", "photo", False), ("photo", None, False)],
)
def test_a_profile_for_another_kind_of_image_is_reported(
    fitted: ImageKind, assessed: ImageKind | None, shown: bool
) -> None:
    assert FITTED.profile is not None
    fusion = ScoreFusion(profile=FITTED.profile.model_copy(update={"image_kind": fitted}))
    (call,) = evidence().tool_log
    given = evidence().model_copy(update={"tool_log": [call.model_copy(update={"image_kind": assessed})]})
    fused = fused_score(fusion, given, GOOD, "logprobs")
    assert ("the fusion profile was fitted to" in fused.how) == shown
    assert fused.score == fused_score(FITTED, evidence(), GOOD, "logprobs").score


def test_the_deviation_of_several_tools_is_their_root_mean_square_or_none() -> None:
    two = {"Global": {"Overall": ("SSIM", 3.0), "Overall (NIQE)": ("NIQE", 4.0)}}
    calls = [
        ToolCall(tool=tool, region="Global", distortion="Overall", calibrated=3, spread=spread, ms=1)
        for tool, spread in (("SSIM", 0.3), ("NIQE", 0.4))
    ]
    assert ExecutorOutput(quality_scores=two, tool_log=calls).overall_spread == pytest.approx((0.125) ** 0.5)
    calls[0] = calls[0].model_copy(update={"spread": None})
    assert ExecutorOutput(quality_scores=two, tool_log=calls).overall_spread is None
    assert ExecutorOutput().overall_spread is None


def test_there_is_an_interval_without_any_deviation() -> None:
    for fusion in (default_fusion(), FITTED, offline_fusion(), ScoreFusion(1.0)):
        for given in (evidence(spread=None), ExecutorOutput()):
            fused = fused_score(fusion, given, GOOD, "logprobs")
            assert 1 <= fused.interval["95"][0] <= fused.interval["80"][0] < fused.score
            assert fused.score < fused.interval["80"][1] <= fused.interval["95"][1] <= 5


def test_the_result_has_the_interval_offline() -> None:
    row = AgenticIQA.offline()(PHOTO, "Rate the quality of this image.").to_dict()
    low, high = row["score_interval"]["80"]
    assert low < row["quality_score"] < high
    assert row["score_without_model"] is None
    (call,) = (call for call in row["executor_evidence"]["tool_log"] if call["tool"] == "LEARNED-IQA")
    assert high - low <= 2 * 1.2816 * call["spread"] + 1e-9
