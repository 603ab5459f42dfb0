"""The fusion study: the fast arithmetic is that of the program, and neither part is dragged down by a bad other one."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.configs import Config, FusionConfig
from agenticiqa.eval.datasets import read_columns, read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.studies import fusion_fit, fusion_study, level_maps
from agenticiqa.eval.studies.fusion_fit import DEFAULT, LEVEL_VALUES, Setting, best_setting, cross_fitted, fused
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.fusion import ScoreFusion

N = 300
RNG = np.random.default_rng(0)
QUALITY = RNG.uniform(1.2, 4.8, N)
GOOD_TOOL = np.clip(QUALITY + 0.5 * RNG.standard_normal(N), 1, 5)
BAD_TOOL = np.clip(3 + 0.4 * RNG.standard_normal(N), 1, 5)
ABLE = 2 * (QUALITY - 3) + RNG.standard_normal(N)
PERFECT = 4 * (QUALITY - 3)
CHANCE = 2 * RNG.standard_normal(N)
CONTENTS = [str(image) for image in range(N)]


def rank(scores: np.ndarray) -> float:
    found = srcc(scores, QUALITY)
    assert found is not None
    return found


@pytest.mark.parametrize("setting", [Setting(1, 0), Setting(2, 0.5), DEFAULT, Setting(0.25, 100)])
def test_the_fast_fusion_is_the_programs(setting: Setting) -> None:
    p = level_maps.from_logits(ABLE[:20])
    fusion = ScoreFusion(setting.eta, model_error=setting.model_error)
    one_by_one = [
        fusion.fuse_scores([tool], dict(enumerate(row / row.sum(), 1)))
        for tool, row in zip(GOOD_TOOL[:20], p, strict=True)
    ]
    assert fused(GOOD_TOOL[:20], p, setting) == pytest.approx(one_by_one, abs=1e-9)


def test_the_default_is_what_a_program_fuses_with() -> None:
    fusion = AgenticIQA.from_config(Config()).summarizer.fusion
    tool, p = GOOD_TOOL[:20], level_maps.from_logits(ABLE[:20])
    by_program = [fusion.fuse_scores([score], dict(enumerate(row, 1))) for score, row in zip(tool, p, strict=True)]
    assert fused(tool, p, DEFAULT) == pytest.approx(by_program, abs=1e-9)


def test_a_study_of_one_model_has_the_default_for_what_needs_others() -> None:
    (row,) = fusion_study.study(GOOD_TOOL, {"able": ABLE}, QUALITY, CONTENTS, resamples=0)
    assert row.held_out_gain.value == pytest.approx(row.shipped_gain.value)


@pytest.mark.parametrize("sharper", [1, 4, 16])
def test_by_default_a_model_at_chance_does_not_drag_a_good_tool_down_however_sure_it_is(sharper: float) -> None:
    assert rank(fused(GOOD_TOOL, level_maps.from_logits(CHANCE, sharper), DEFAULT)) > rank(GOOD_TOOL) - 0.01


def test_without_the_guard_it_does() -> None:
    assert rank(fused(GOOD_TOOL, level_maps.from_logits(CHANCE, 4), Setting(1, 0))) < rank(GOOD_TOOL) - 0.05


def test_fitted_the_tools_do_not_drag_a_perfect_model_down_nor_a_model_at_chance_the_tools() -> None:
    perfect, chance = level_maps.from_logits(PERFECT), level_maps.from_logits(CHANCE)
    assert rank(cross_fitted(BAD_TOOL, perfect, QUALITY, CONTENTS)) > 0.98
    assert rank(cross_fitted(GOOD_TOOL, chance, QUALITY, CONTENTS)) > rank(GOOD_TOOL) - 0.01
    assert best_setting(BAD_TOOL, perfect, QUALITY).model_error < DEFAULT.model_error


def test_fitted_two_fair_parts_make_a_better_whole() -> None:
    p = level_maps.from_logits(ABLE)
    assert rank(cross_fitted(GOOD_TOOL, p, QUALITY, CONTENTS)) > max(rank(GOOD_TOOL), rank(p @ LEVEL_VALUES)) + 0.01


def test_a_gain_within_chance_leaves_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    p = level_maps.from_logits(CHANCE)
    best = max(fusion_fit.SETTINGS, key=lambda setting: rank(fused(GOOD_TOOL, p, setting)))
    gained = rank(fused(GOOD_TOOL, p, best)) - rank(fused(GOOD_TOOL, p, DEFAULT))
    assert 0 < gained < fusion_fit.MIN_GAIN
    assert best_setting(GOOD_TOOL, p, QUALITY) == DEFAULT
    monkeypatch.setattr(fusion_fit, "MIN_GAIN", 0.0)
    assert best_setting(GOOD_TOOL, p, QUALITY) == best


def test_a_model_that_says_nothing_leaves_the_default() -> None:
    assert best_setting(GOOD_TOOL, np.full((N, 5), 0.2), QUALITY) == DEFAULT


@pytest.mark.parametrize("make", level_maps.FIT_MAPS.values(), ids=level_maps.FIT_MAPS)
def test_a_map_from_margins_gives_distributions_that_never_fall_with_the_margin(make: level_maps.FitMap) -> None:
    p = make(ABLE, QUALITY)(np.linspace(-6, 6, 40))
    assert p.sum(axis=1) == pytest.approx(np.ones(40))
    assert (p >= 0).all()
    assert (np.diff(p @ LEVEL_VALUES) > 0).all()


@pytest.mark.parametrize("spread", [0.6, 0.75])
def test_the_gaussian_map_is_as_wide_as_the_residuals(spread: float) -> None:
    margins = QUALITY - 3
    noisy = QUALITY + spread * np.random.default_rng(1).standard_normal(N)
    p = level_maps.fit_gaussian(margins, noisy)(np.zeros(1))[0]
    assert np.sqrt(p @ (LEVEL_VALUES - 3) ** 2) == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("name", ["gaussian", "ordinal"])
def test_a_fitted_map_of_a_model_at_chance_or_worse_hardly_moves(name: str) -> None:
    for margins in (CHANCE, -ABLE):
        expectation = level_maps.FIT_MAPS[name](margins, QUALITY)(np.linspace(-6, 6, 9)) @ LEVEL_VALUES
        assert np.ptp(expectation) < 0.7


def test_scores_are_ranked_within_their_fold_from_0_to_1() -> None:
    folds, scores = np.array([0, 1, 0, 1, 1]), np.array([30.0, 3, 20, 1, 2])
    assert fusion_study.ranks_within(folds, scores).tolist() == [1, 1, 0.5, pytest.approx(1 / 3), pytest.approx(2 / 3)]


def test_where_no_setting_is_safe_the_worst_loss_decides_and_not_the_mean() -> None:
    margins = {"first": PERFECT, "second": PERFECT, "against": -PERFECT}

    def gains(setting: Setting) -> list[float]:
        levels = [level_maps.from_logits(m, s) for m in margins.values() for s in fusion_study.SHARPNESS]
        better = [max(rank(BAD_TOOL), rank(m)) for m in margins.values() for _ in fusion_study.SHARPNESS]
        return [rank(fused(BAD_TOOL, p, setting)) - alone for p, alone in zip(levels, better, strict=True)]

    found = fusion_study.safest(BAD_TOOL, margins, QUALITY)
    every = [Setting(DEFAULT.eta, error) for error in fusion_fit.MODEL_ERRORS]
    assert max(min(gains(setting)) for setting in every) == min(gains(found)) < -fusion_study.ALLOWED_LOSS
    assert np.mean(gains(found)) < max(np.mean(gains(setting)) for setting in every)


def test_the_study_finds_who_gains_and_prints_a_row_for_each(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    labels, margins, scores = tmp_path / "labels.csv", tmp_path / "margins.csv", tmp_path / "scores.csv"
    names = [f"{image}.png" for image in range(N)]
    for name in names:
        (tmp_path / name).touch()
    write(labels, ["image", "mos"], zip(names, 25 * (QUALITY - 1), strict=True))
    write(margins, ["image", "able", "chance"], zip(names, ABLE, CHANCE, strict=True))
    write(scores, ["image", "score"], zip(names, GOOD_TOOL, strict=True))
    assert fusion_study.main([str(labels), str(margins), "--tool-scores", str(scores), "--resamples", "20"]) == 0
    out = capsys.readouterr().out
    able, chance = (
        next(line for line in out.splitlines() if line.startswith(f"| {name} ")) for name in ("able", "chance")
    )
    assert "| +0." in able
    assert able.count("|") == chance.count("|") == 12
    assert "- fitted: beats both parts for 1 of 1 VLMs over 0.3" in out
    write(scores, ["image", "score"], zip(names[1:], GOOD_TOOL[1:], strict=True))
    assert fusion_study.main([str(labels), str(margins), "--tool-scores", str(scores)]) == 2
    assert "0.png" in capsys.readouterr().err


def test_a_run_is_fitted_and_its_section_is_one_for_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "results.jsonl"
    rows = [
        {
            "quality_probs": dict(zip("12345", map(float, p), strict=True)),
            "executor_evidence": {"quality_scores": {"Global": {"Overall": ["NIQE", float(tool)]}}},
            "mos": float(quality),
            "content": content,
        }
        for p, tool, quality, content in zip(level_maps.from_logits(PERFECT), BAD_TOOL, QUALITY, CONTENTS, strict=True)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"error": "no image", "mos": 3.0}]))
    assert fusion_fit.main([str(path), "--resamples", "20"]) == 0
    import yaml

    out = capsys.readouterr().out
    assert f"{N} images" in out
    section = FusionConfig.model_validate(yaml.safe_load(out)["fusion"])
    assert section.model_error < DEFAULT.model_error
    judged_before = [{**row, "mos": -9.0, "quality_probs": dict.fromkeys("12345", 0.2)} for row in rows]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*judged_before, *rows]))
    assert fusion_fit.main([str(path), "--resamples", "20"]) == 0
    assert capsys.readouterr().out == out, "of an image that was judged again only the last row counts"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows[:5]))
    assert fusion_fit.main([str(path)]) == 2
    assert "at least 30" in capsys.readouterr().err


def test_on_the_real_answers_no_model_costs_the_tool_more_than_is_allowed(shared_data: Path) -> None:
    """With a stand-in for a tool of SRCC 0.8, made of the labels and noise."""
    items = read_labels(shared_data / "clive" / "labels.csv")
    quality = 1 + np.array([item.mos for item in items]) / 25
    tool = np.clip(quality + 0.55 * np.random.default_rng(1).standard_normal(len(quality)), 1, 5)
    alone = srcc(tool, quality) or 0.0
    gains = {
        name: (srcc(fused(tool, level_maps.from_logits(margins), DEFAULT), quality) or 0.0) - alone
        for name, margins in read_columns(shared_data / "clive" / "peer_vlm_margins.csv", items).items()
    }
    assert len(gains) == 15
    assert min(gains.values()) > -fusion_study.ALLOWED_LOSS
    assert sum(gain > 0 for gain in gains.values()) >= 9


def write(path: Path, header: list[str], rows: object) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])  # type: ignore[misc]
