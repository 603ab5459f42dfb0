"""The predictors beside our score: made of the kept rows, and never chosen on the images that they are measured on."""

from typing import Any

import numpy as np
import pytest

from agenticiqa.eval.report.columns import columns_of
from agenticiqa.eval.report.predictors import chosen_on_other_images, predictors
from agenticiqa.eval.report.summary import summarize
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.signatures.types import ExecutorOutput


def row(number: int, source: str | None = "logprobs", tool: float = 3.0, **changes: Any) -> dict[str, Any]:
    """A row of a model that is sure of level 4, and of one tool."""
    return {
        "name": f"{number}.png",
        "content": f"{number}",
        "mos": float(number),
        "quality_score": 3.5,
        "quality_probs": {"1": 0.0, "2": 0.0, "3": 0.25, "4": 0.5, "5": 0.25} if source else None,
        "probability_source": source,
        "executor_evidence": {
            "quality_scores": {"Global": {"Overall": ["SSIM", tool]}},
            "tool_log": [{"tool": "SSIM", "calibrated": tool, "error": None}],
        },
        **changes,
    }


def values(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {each.name: each.values for each in predictors(columns_of(rows))}


def test_model_tools_average_and_the_papers_fusion_come_from_the_kept_rows() -> None:
    found = values([row(0, tool=2.0)])
    paper = ScoreFusion().fuse_scores([2.0], {1: 0.0, 2: 0.0, 3: 0.25, 4: 0.5, 5: 0.25})
    assert found["model alone"] == pytest.approx([4.0])
    assert found["tool mean"] == pytest.approx([2.0])
    assert found["average of both"] == pytest.approx([3.0])
    assert found["the paper's fusion"] == pytest.approx([paper])


def test_the_score_without_a_profile_stands_beside_one_that_was_made_with_it() -> None:
    probabilities = {1: 0.0, 2: 0.0, 3: 0.25, 4: 0.5, 5: 0.25}
    evidence = ExecutorOutput(quality_scores={"Global": {"Overall": ("SSIM", 2.0)}})
    default = fused_score(default_fusion(), evidence, probabilities, "logprobs").score
    kept = {"executor_evidence": evidence.model_dump(), "fusion": {"model": "m", "score_fitted": 2.5}}
    with_one = values([row(0, quality_score=2.5, **kept)])
    assert with_one["AgenticIQA without a profile"] == pytest.approx([default])
    assert "AgenticIQA with a profile" not in with_one, "it is the score itself"
    without = values([row(0, quality_score=default, **kept)])
    assert without["AgenticIQA with a profile"] == pytest.approx([2.5])
    assert "AgenticIQA without a profile" not in without


def test_probabilities_that_stand_for_no_answer_are_no_opinion() -> None:
    found = values([row(0), row(1, "uniform"), row(2, None)])
    assert np.isfinite(found["model alone"]).tolist() == [True, False, False]
    assert np.isfinite(found["average of both"]).tolist() == [True, False, False]


def test_several_sources_stand_apart_and_the_offline_opinion_is_no_model() -> None:
    mixed = values([row(0), row(1, "reasoning")])
    assert np.isfinite(mixed["model alone"]).tolist() == [True, True]
    assert np.isfinite(mixed["model alone, reasoning"]).tolist() == [False, True]
    offline = values([row(0, "learned")])
    assert "model alone" not in offline
    assert offline["offline opinion alone"] == pytest.approx([4.0])


def test_the_best_tool_is_chosen_on_other_contents() -> None:
    """Of twenty tools of pure noise the best on these images looks useful; the one chosen on others does not."""
    rng = np.random.default_rng(0)
    contents = [f"{number}" for number in range(60)]
    best_here, chosen = [], []
    for _ in range(20):
        mos = rng.normal(size=60)
        tools = {f"T{number}": rng.normal(size=60) for number in range(20)}
        best_here.append(max(np.corrcoef(values, mos)[0, 1] for values in tools.values()))
        found = chosen_on_other_images(tools, mos, contents)
        assert found is not None
        chosen.append(np.corrcoef(found.values, mos)[0, 1])
    assert np.mean(best_here) > 0.2
    assert np.mean(chosen) < 0.05
    tools["good"] = mos + 0.1 * rng.normal(size=60)
    good = chosen_on_other_images(tools, mos, contents)
    assert good is not None
    assert good.values == pytest.approx(tools["good"])
    assert good.used(3) == {"good"}


def test_one_content_has_no_other_images_to_choose_on() -> None:
    assert chosen_on_other_images({"T": np.arange(5.0)}, np.arange(5.0), ["scene"] * 5) is None


def test_a_tool_that_ran_only_where_it_was_chosen_is_marked() -> None:
    rows = [row(number, tool=2 + number / 10) for number in range(8)]
    for each in rows[:3]:
        each["executor_evidence"]["tool_log"].append({"tool": "PSNR", "calibrated": 3.0, "error": None})
    partial = {each.name: each.partial for each in predictors(columns_of(rows)) if each.kind == "tool"}
    assert partial == {"SSIM": False, "PSNR": True}


def test_breakdowns_and_the_scores_own_interval() -> None:
    """Opinions of 0 to 7 on the scale 1..5 they are not: 0..100, so all lie near level 1."""
    rows = [
        row(
            number,
            distortion="blur" if number % 2 else "noise",
            level=1,
            quality_score=None if number == 0 else 1 + number / 4,
            score_interval={"80": [1.0, 1.2], "95": [1.0, 1.3]} if number else None,
        )
        for number in range(8)
    ]
    summary = summarize(rows)
    blur, noise = summary["breakdowns"]["distortion"]
    assert (blur["group"], blur["images"], blur["n"], blur["unscored"]) == ("blur", 4, 4, 0)
    assert (noise["group"], noise["images"], noise["n"], noise["unscored"]) == ("noise", 4, 3, 1)
    assert blur["srcc"]["value"] == pytest.approx(1)
    assert "level" not in summary["breakdowns"]
    assert summary["scale"] == {"low": 0.0, "high": 100.0}
    assert {share: (each["inside"], each["n"]) for share, each in summary["interval_coverage"].items()} == {
        "80": (5, 7),
        "95": (7, 7),
    }


def test_the_raw_error_is_on_the_labels_scale() -> None:
    rows = [row(number, mos=25.0 * (number % 4), quality_score=1.0 + number % 4 + 0.4) for number in range(8)]
    systems = {each["name"]: each for each in summarize(rows)["systems"]}
    assert systems["AgenticIQA"]["rmse"]["value"] == pytest.approx(10)
    assert systems["AgenticIQA"]["rmse_fitted"]["value"] < 2
