"""Fitting the fusion to rows: which rows are used, in any order, and what the rows then show."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from agenticiqa.programs.batch.fit_fusion import (
    ANOTHER,
    fit_auto,
    fit_rows,
    fuse_row,
    fusion_row,
    not_used_text,
    profile_digest,
    unusable,
)
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.programs.stages.summarizer import on_stated_scale
from agenticiqa.signatures.types import ExecutorOutput

Row = dict[str, Any]
DEFAULT = default_fusion()


def row(number: int, quality: float, model: float, **fusion: Any) -> Row:
    """Return a row with the score ``quality`` of LEARNED-IQA and the rating ``model`` of the model."""
    shares = {str(level): 2.0 ** (-2 * (level - model) ** 2) for level in range(1, 6)}
    probabilities = {level: share / sum(shares.values()) for level, share in shares.items()}
    call = {"tool": "LEARNED-IQA", "region": "Global", "distortion": "Overall", "spread": 0.7, "ms": 1}
    evidence = {"quality_scores": {"Global": {"Overall": ["LEARNED-IQA", quality]}}, "tool_log": [call]}
    p = {int(level): share for level, share in probabilities.items()}
    made = fused_score(DEFAULT, ExecutorOutput.model_validate(evidence), p, "logprobs")
    said = f"It looks fine. {made.how} The evidence has no distortion analysis."
    scores = {
        "final_answer": made.score,
        "quality_score": made.score,
        "score_interval": {share: [*ends] for share, ends in made.interval.items()},
        "score_without_model": made.without_model,
        "disagreement": made.disagreement,
        "quality_reasoning": said,
    }
    return {
        "image": f"{number}.png",
        "image_sha256": f"{number:064}",
        "query": "Rate it.",
        "query_type": "scoring",
        **scores,
        "quality_probs": probabilities,
        "probability_source": "logprobs",
        "executor_evidence": evidence,
        "summarizer_result": scores,
        "answered_by": {"scoring": ["vllm/test"]},
        "fusion": {"model": "vllm.test", "prompts": "p", "curves": "c", **fusion},
    }


@pytest.fixture
def rows() -> list[Row]:
    """Return rows of 60 images; tool and model have independent errors, and NIQE falls with quality."""
    draw, made = random.Random(3), []
    for number in range(60):
        truth = draw.uniform(1.5, 4.5)
        tool, model = (min(max(truth + draw.gauss(0, 0.4), 1), 5) for _ in range(2))
        made.append(row(number, tool, model, third_tools={"NIQE": 9 - truth + draw.gauss(0, 0.8)}))
    return made


def test_the_order_of_the_rows_changes_no_digit(rows: list[Row]) -> None:
    fit, (auto, _) = fit_rows(rows), fit_auto(rows)
    fused = {each["image"]: fuse_row(each, auto, DEFAULT) for each in rows}
    for seed in range(3):
        shuffled = random.Random(seed).sample(rows, len(rows))
        again, _ = fit_auto(shuffled)
        assert auto is not None
        assert fit_rows(shuffled).profile == fit.profile == auto.profile
        assert {each["image"]: fuse_row(each, again, DEFAULT) for each in shuffled} == fused


def test_a_profile_records_its_subject_and_uses_labels(rows: list[Row]) -> None:
    fit = fit_rows(rows)
    assert (fit.profile.backend, fit.profile.prompts, fit.profile.toolset, fit.profile.curves, fit.profile.images) == (
        "vllm.test",
        "p",
        ("LEARNED-IQA",),
        "c",
        60,
    )
    assert fit.profile.fitted_on is None, "so that the same rows give the same profile on another day"
    labels = {each["image_sha256"]: 3.0 for each in rows[:7]}
    assert [fusion_row(each, labels).label for each in rows[:8]] == [3.0] * 7 + [None]
    assert fit_rows(rows, {each["image_sha256"]: 3.0 + n / 60 for n, each in enumerate(rows)}).profile.labels == 60


def test_third_tools_count_as_higher_is_better(rows: list[Row]) -> None:
    assert fusion_row(rows[0]).others == {"NIQE": -rows[0]["fusion"]["third_tools"]["NIQE"]}
    assert fusion_row(rows[0]).tool_error == 0.7
    assert fit_rows(rows).profile.reliability["three_way"] > 0.3, "NIQE falls where the quality rises"


UNUSABLE: dict[str, Callable[[Row], Row]] = {
    "that failed": lambda row: {"image": row["image"], "query": row["query"], "error": "ImageError: broken"},
    "that are not ratings": lambda row: {**row, "query_type": "mcq"},
    "without usable probabilities": lambda row: {**row, "probability_source": "salvaged_level"},
    "that no model rated": lambda row: {**row, "answered_by": {}, "probability_source": "learned"},
    "without a single tool score for the whole image": lambda row: {
        **row,
        "executor_evidence": {"quality_scores": None},
    },
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_unusable_rows_are_left_out_and_counted(rows: list[Row], reason: str) -> None:
    changed = [*map(UNUSABLE[reason], rows[:5]), *rows[5:]]
    assert unusable(changed[0]) == reason
    fit = fit_rows(changed)
    assert (fit.profile.images, fit.not_used) == (55, {reason: 5})
    assert [fuse_row(each, fit_auto(changed)[0], DEFAULT) for each in changed[:5]] == changed[:5], "they stay"
    assert fit.profile == fit_rows(rows[5:]).profile


def test_the_model_with_the_most_rows_is_fitted_and_an_image_counts_once(rows: list[Row]) -> None:
    other = [{**each, "fusion": {**each["fusion"], "model": "vllm.other"}} for each in rows[:20]]
    fit = fit_rows([*other, *rows[20:], *rows[20:30]])
    assert (fit.profile.backend, fit.profile.images, fit.not_used) == ("vllm.test", 40, {ANOTHER: 20})
    asked_twice = [{**each, "query": "Rate the sky.", "quality_probs": rows[0]["quality_probs"]} for each in rows]
    assert fit_rows([*asked_twice, *rows]).profile == fit_rows([*rows, *asked_twice]).profile == fit_rows(rows).profile
    assert not_used_text({"b": 2, "a": 2, "c": 3}) == "3 c, 2 a, 2 b"


def test_too_few_rows_are_refused_with_the_reasons_of_the_others(rows: list[Row]) -> None:
    with pytest.raises(UserError, match="at least 10 images that a model rated, found 9") as refused:
        fit_rows([*rows[:9], *map(UNUSABLE["that are not ratings"], rows[9:12])])
    assert "(3 that are not ratings)" in str(refused.value)
    with pytest.raises(UserError, match="found 0"):
        fit_rows([])


def test_a_row_shows_one_score_stores_both_and_can_be_restored(rows: list[Row]) -> None:
    fit = fit_rows(rows)
    fitted = fuse_row(rows[0], fit, DEFAULT)
    evidence = ExecutorOutput.model_validate(rows[0]["executor_evidence"])
    expected = fused_score(ScoreFusion(profile=fit.profile), evidence, probabilities(rows[0]), "logprobs")
    assert fitted["quality_score"] == fitted["final_answer"] == fitted["fusion"]["score_fitted"] == expected.score
    assert fitted["fusion"]["score_default"] == rows[0]["quality_score"] != expected.score
    assert fitted["fusion"]["profile"] == profile_digest(fit.profile)
    assert fitted["quality_reasoning"] == f"It looks fine. {expected.how} The evidence has no distortion analysis."
    assert fitted["summarizer_result"]["quality_reasoning"] == fitted["quality_reasoning"]
    back = fuse_row(fitted, None, DEFAULT)
    assert {key: back[key] for key in rows[0] if key != "fusion"} == {
        key: value for key, value in rows[0].items() if key != "fusion"
    }
    assert fuse_row(back, fit, DEFAULT) == fitted == fuse_row(fitted, fit, DEFAULT)


def test_a_rating_on_another_scale_keeps_its_scale(rows: list[Row]) -> None:
    asked = "Rate the quality from 1 to 10."
    fitted = fuse_row({**rows[0], "query": asked}, fit_rows(rows), DEFAULT)
    assert fitted["final_answer"] == on_stated_scale(fitted["quality_score"], asked)
    assert "of 10" in fitted["final_answer"]


def test_a_score_that_was_not_fused_is_unchanged(rows: list[Row]) -> None:
    identical = {**rows[0], "quality_score": 5.0, "quality_reasoning": "The same pixels."}
    assert fuse_row(identical, fit_rows(rows), DEFAULT) is identical


def probabilities(each: Row) -> dict[int, float]:
    """Return the level probabilities of a row."""
    return {int(level): share for level, share in each["quality_probs"].items()}
