"""Fits of a fusion profile: without labels, with few images, with labels, and in any order of rows."""

import math
import random
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.fit import FusionRow, correlation, fit_profile, normal_scores, shrunk
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import FusionProfile, read_fusion_profile, write_fusion_profile
from support.profiles import TYPICAL


def level_probabilities(expectation: float, error: float = 0.5) -> dict[int, float]:
    """Return Gaussian probabilities over the levels around an expectation."""
    shares = {level: math.exp(-0.5 * ((level - expectation) / error) ** 2) for level in range(1, 6)}
    return {level: share / sum(shares.values()) for level, share in shares.items()}


def simulated(model: float, n: int = 1500, tool: float = 0.8, third: float = 0.5, seed: int = 1) -> list[FusionRow]:
    """Return images with these reliabilities of tool, model and third tool, with independent errors."""
    draw = random.Random(seed)

    def seen(quality: float, reliability: float) -> float:
        return reliability * quality + math.sqrt(1 - reliability**2) * draw.gauss(0, 1)

    rows = []
    for _ in range(n):
        quality = draw.gauss(0, 1)
        score = min(max(3.2 + 0.6 * seen(quality, tool), 1), 5)
        expectation = min(max(3.6 + 0.5 * seen(quality, model), 1.05), 4.95)
        rows.append(FusionRow(score, level_probabilities(expectation), others={"NIQE": seen(quality, third)}))
    return rows


@pytest.mark.parametrize("reliability", [0.3, 0.6, 0.9])
def test_the_models_reliability_is_estimated_without_labels(reliability: float) -> None:
    profile = fit_profile(simulated(reliability), tool_reliability=0.8)
    assert profile.reliability["model"] == pytest.approx(reliability, abs=0.08)
    assert profile.reliability["agreement"] == pytest.approx(reliability, abs=0.08)
    assert profile.reliability["three_way"] == pytest.approx(reliability, abs=0.1)


def test_a_better_model_gets_a_smaller_error_and_the_tools_error_stays() -> None:
    good, poor = (fit_profile(simulated(r), tool_reliability=0.8) for r in (0.9, 0.4))
    assert good.model_error < 0.6 < 1.2 < poor.model_error
    assert good.tool_error == pytest.approx(poor.tool_error, rel=0.1)


def test_the_order_of_the_rows_does_not_change_a_digit() -> None:
    rows = simulated(0.7, n=97)
    profile = fit_profile(rows)
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert fit_profile(rows) == profile


def test_few_images_stay_near_a_typical_model_and_fewer_than_ten_of_one_kind_are_refused() -> None:
    rows = simulated(0.2)
    two_kinds = [replace(row, image_kind=kind) for row in rows[:9] for kind in ("photo", "generated")]
    for few in (rows[:9], two_kinds):
        with pytest.raises(ValueError, match="at least 10 images of one kind, got 9"):
            fit_profile(few)
    trusted = [fit_profile(rows[:n]).reliability["model"] for n in (12, 60, 1500)]
    assert trusted == sorted(trusted, reverse=True)
    assert trusted[0] > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("tool", [0.5, 0.8])
def test_a_model_at_chance_changes_no_order(tool: float) -> None:
    for seed in range(5):
        rows = simulated(0.0, n=550, tool=tool, seed=seed)
        profile = fit_profile(rows, tool_reliability=tool)
        assert profile.reliability["model"] < 0.1
        fusion = ScoreFusion(profile=profile)
        scores = [fusion.fuse_scores([row.tool_score], row.probabilities) for row in rows]
        assert correlation(normal_scores(scores), normal_scores([row.tool_score for row in rows])) > 0.97


def test_an_estimate_is_shrunk_toward_the_likelier_kind_of_model() -> None:
    assert shrunk(0.05, 500) < 0.08
    assert shrunk(0.7, 500) == pytest.approx(0.7, abs=0.01)
    assert shrunk(0.05, 1) > 0.4
    expected = [shrunk(estimate / 20, 100) for estimate in range(20)]
    assert expected == sorted(expected)


def test_the_position_of_the_models_levels_is_estimated() -> None:
    """If the model's mean is 3.6 and the tools' mean is 3.2, the model's 3.6 is mapped to 3.2."""
    profile = fit_profile(simulated(0.9))
    assert profile.mapped(3.6) == pytest.approx(3.2, abs=0.12)
    assert profile.mapped(4.6) > profile.mapped(3.6) + 1


def test_a_constant_model_and_a_constant_tool_break_nothing() -> None:
    rows = [FusionRow(3.0, level_probabilities(4.0)) for _ in range(40)]
    profile = fit_profile(rows)
    assert 1 <= ScoreFusion(profile=profile).fuse_scores([3.0], level_probabilities(4.0)) <= 5


def test_a_profile_records_what_it_was_fitted_to() -> None:
    profile = fit_profile(simulated(0.8, n=50), toolset=["NIQE", "FSIM"])
    assert (profile.toolset, profile.images) == (("FSIM", "NIQE"), 50)


def test_a_profile_is_read_back_to_the_last_digit(tmp_path: Path) -> None:
    profile = fit_profile(simulated(0.7, n=60)).model_copy(update={"fitted_on": date(2026, 11, 22)})
    write_fusion_profile(tmp_path / "p.yaml", profile)
    assert read_fusion_profile(tmp_path / "p.yaml") == profile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("a: [", "not valid YAML"),
        ("tool_error: 1", "model_error"),
        ("[1, 2]", "profile"),
        ("{tool_error: 1, model_error: .nan}", "model_error"),
        ("{tool_error: 1, model_error: 1, modle_slope: 2}", "modle_slope"),
    ],
)
def test_an_invalid_profile_is_reported_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "p.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message) as shown:
        read_fusion_profile(path)
    assert "\n" not in str(shown.value)
    assert str(path) in str(shown.value)


def test_normal_scores_of_equal_values_are_equal_and_symmetric() -> None:
    assert normal_scores([5.0, 1.0, 5.0, 9.0]) == pytest.approx([0.0, -1.15035, 0.0, 1.15035], abs=1e-4)
    assert correlation([1.0, 2.0], [3.0, 3.0]) == 0


def test_a_profile_moves_the_score_toward_the_more_reliable_side() -> None:
    """The tools give 3; a model at 4.4 moves the score more, the smaller its error is."""
    said = level_probabilities(4.4)
    scores = [
        ScoreFusion(profile=FusionProfile(tool_error=0.6, model_error=error)).fuse_scores([3.0], said)
        for error in (0.3, 0.8, 3, 30)
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 3.9
    assert scores[-1] == pytest.approx(3, abs=0.01)


def test_a_model_far_from_the_tools_loses_its_influence() -> None:
    """The farther the model is from the tools, the less it counts; far away, the score returns to the tools."""
    profile = fit_profile(simulated(0.9), tool_reliability=0.8)
    fusion, gaussian = (
        ScoreFusion(profile=profile),
        ScoreFusion(profile=profile.model_copy(update={"unrelated_answers": 0})),
    )
    said = level_probabilities(4.95)
    moved = {tools: fusion.fuse_scores([tools], said) - tools for tools in (2.0, 2.5, 3.0, 3.5, 4.0)}
    before = {tools: gaussian.fuse_scores([tools], said) - tools for tools in moved}
    assert before[2.0] > 2
    assert moved[2.0] < 0.5
    assert moved[2.5] < before[2.5] / 2
    assert moved[4.0] > before[4.0] / 2
    assert moved[4.0] > moved[2.0]
    assert fusion.fuse_scores([], said) == gaussian.fuse_scores([], said)


def test_a_profile_of_an_earlier_version_gives_the_same_score(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    write_fusion_profile(file, fit_profile(simulated(0.9)))
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "unrelated_answers" not in line))
    old = read_fusion_profile(file)
    assert (old.unrelated_answers, fit_profile(simulated(0.9)).unrelated_answers) == (0, 0.05)
    assert ScoreFusion(profile=old).fuse_scores([2.0], level_probabilities(4.95)) > 4


def test_the_tools_reliability_on_generated_images_is_used_for_them() -> None:
    """The tool with .8 on photos has .65 there, so the same agreement means a better model."""
    rows = simulated(0.7, tool=0.65)
    photos, generated = ([replace(row, image_kind=kind) for row in rows] for kind in ("photo", "generated"))
    of_photos, of_generated = (fit_profile(each, toolset=["LEARNED-IQA"]) for each in (photos, generated))
    assert of_generated.reliability["tool"] < of_photos.reliability["tool"]
    assert of_generated.tool_error > of_photos.tool_error
    assert (of_photos.image_kind, of_generated.image_kind) == ("photo", "generated")


def test_a_profile_is_fitted_to_the_most_frequent_kind_of_image() -> None:
    rows = simulated(0.7, n=200)
    mixed = [replace(row, image_kind="generated" if place < 60 else "photo") for place, row in enumerate(rows)]
    profile = fit_profile(mixed, tool_reliability=0.8)
    assert profile == fit_profile(mixed[60:], tool_reliability=0.8)
    assert (profile.images, profile.image_kind) == (140, "photo")
    assert fit_profile(rows).image_kind is None


def test_without_tool_scores_the_profiles_mos_replaces_them() -> None:
    profile = FusionProfile(tool_error=0.6, model_error=1.0, quality_mean=2.5, quality_std=1.0)
    assert 2.5 < ScoreFusion(profile=profile).fuse_scores([], level_probabilities(4.5)) < 4


def test_the_tools_reported_error_replaces_eta() -> None:
    fusion, said = ScoreFusion(profile=TYPICAL), level_probabilities(4.5)
    sure, unsure = (fusion.fuse_scores([2.0], said, tool_error=error) for error in (0.3, 1.5))
    assert sure < fusion.fuse_scores([2.0], said) < unsure
    with pytest.raises(ValueError, match="tool_error"):
        fusion.fuse_scores([2.0], said, tool_error=0)


def test_with_labels_both_reliabilities_are_measured_on_labeled_rows() -> None:
    draw, rows = random.Random(5), []
    for number in range(300):
        truth = draw.gauss(3, 0.8)
        tool, model = (min(max(truth + draw.gauss(0, error), 1.05), 4.95) for error in (1.4, 0.3))
        rows.append(FusionRow(tool, level_probabilities(model), label=truth if number < 200 else None))
    profile = fit_profile(rows, tool_reliability=0.9)
    assert (profile.images, profile.labels) == (300, 200)
    assert profile.reliability["tool"] < 0.7 < 0.85 < profile.reliability["model"]
    assert profile.quality_std == pytest.approx(0.8, abs=0.08)
    assert fit_profile(rows, tool_reliability=0.9).model_error < profile.tool_error
    assert fit_profile([*rows[:9], *rows[200:]], tool_reliability=0.9).labels == 0


def test_three_scorers_give_the_reliability_if_none_is_known() -> None:
    profile = fit_profile(
        [FusionRow(r.tool_score, r.probabilities, others={"MINE": r.others["NIQE"]}) for r in simulated(0.5)]
    )
    assert "agreement" not in profile.reliability
    assert profile.reliability["model"] == pytest.approx(0.5, abs=0.1)


def test_the_most_reliable_tool_is_used_even_if_another_gives_the_score() -> None:
    """A tool degraded from .8 to .4 estimates the model less reliably than LEARNED-IQA."""
    rows = [
        FusionRow(r.tool_score, r.probabilities, others={"LEARNED-IQA": r.others["NIQE"]})
        for r in simulated(0.9, tool=0.4, third=0.83)
    ]
    assert fit_profile(rows, tool_reliability=0.4).reliability["model"] == pytest.approx(0.9, abs=0.05)
