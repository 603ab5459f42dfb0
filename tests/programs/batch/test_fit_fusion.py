"""Fitting the fusion to rows: which rows are used, in any order."""

import random
from collections.abc import Callable

import pytest

from agenticiqa.programs.batch.fit_fusion import (
    ANOTHER,
    fit_rows,
    fusion_row,
    not_used_text,
    unusable,
)
from agenticiqa.programs.errors import UserError
from support.fusion_rows import Row, rows_of_a_model


@pytest.fixture
def rows() -> list[Row]:
    """Return rows of 60 images."""
    return rows_of_a_model(60)


def test_the_order_of_the_rows_changes_no_digit(rows: list[Row]) -> None:
    fit = fit_rows(rows)
    for seed in range(3):
        assert fit_rows(random.Random(seed).sample(rows, len(rows))) == fit


def test_a_profile_records_its_subject_and_uses_labels(rows: list[Row]) -> None:
    fit = fit_rows(rows)
    assert (fit.profile.backend, fit.profile.prompt, fit.profile.toolset, fit.profile.curves, fit.profile.images) == (
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
    assert fit.profile == fit_rows(rows[5:]).profile


def test_the_model_with_the_most_rows_is_fitted_and_an_image_counts_once(rows: list[Row]) -> None:
    for another in ({"model": "vllm.other"}, {"prompt": "q"}, {"tuned": True}, {"curves": "d"}):
        other = [{**each, "fusion": {**each["fusion"], **another}} for each in rows[:20]]
        fit = fit_rows([*other, *rows[20:], *rows[20:30]])
        assert (fit.profile.backend, fit.profile.images, fit.not_used) == ("vllm.test", 40, {ANOTHER: 20})
        assert (fit.profile.prompt, fit.profile.tuned) == ("p", False)
    asked_twice = [{**each, "query": "Rate the sky.", "quality_probs": rows[0]["quality_probs"]} for each in rows]
    assert fit_rows([*asked_twice, *rows]).profile == fit_rows([*rows, *asked_twice]).profile == fit_rows(rows).profile
    assert not_used_text({"b": 2, "a": 2, "c": 3}) == "3 c, 2 a, 2 b"


def test_too_few_rows_are_refused_with_the_reasons_of_the_others(rows: list[Row]) -> None:
    with pytest.raises(UserError, match="at least 10 images that a model rated, found 9") as refused:
        fit_rows([*rows[:9], *map(UNUSABLE["that are not ratings"], rows[9:12])])
    assert "(3 that are not ratings)" in str(refused.value)
    with pytest.raises(UserError, match="found 0"):
        fit_rows([])
