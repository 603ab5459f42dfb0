"""Labels are split by content."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.optimize.splits import split_by_content
from agenticiqa.programs.errors import UserError


def label(number: int, content: str, mos: float = 3.0) -> LabeledImage:
    name = f"{number}.png"
    return LabeledImage(name, Path(name), None, mos, None, None, None, None, None, content)


def labels(contents: int, each: int = 3) -> list[LabeledImage]:
    return [label(row, f"scene {row % contents}", row) for row in range(contents * each)]


@settings(deadline=None)
@given(st.integers(3, 40), st.floats(0.05, 0.9), st.integers(0, 99))
def test_no_content_is_in_two_splits_and_none_is_empty(contents: int, share: float, seed: int) -> None:
    rows = labels(contents)
    splits = split_by_content(rows, held_out=share, max_val=1000, seed=seed)
    seen = [{row.content for row in split} for split in (splits.train, splits.val, splits.held_out)]
    assert all(seen)
    assert sum(map(len, seen)) == len(set.union(*seen)) == contents
    assert sorted([*splits.train, *splits.val, *splits.held_out], key=lambda row: row.mos) == rows


def test_the_seed_determines_the_split() -> None:
    first, same, other = (split_by_content(labels(20), held_out=0.3, max_val=99, seed=seed) for seed in (4, 4, 5))
    assert first == same != other


def test_the_held_out_share_is_kept_and_validation_is_capped() -> None:
    splits = split_by_content(labels(40), held_out=0.25, max_val=7, seed=0)
    assert len(splits.held_out) == 30
    assert len(splits.val) == 7
    assert len(splits.train) == 54


@pytest.mark.parametrize("share", [0, 1, -0.2, 7])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        split_by_content(labels(5), held_out=share, max_val=9, seed=0)


def test_two_contents_cannot_be_split_in_three() -> None:
    with pytest.raises(UserError, match="2 contents"):
        split_by_content(labels(2), held_out=0.3, max_val=9, seed=0)


def test_the_validation_images_that_are_kept_are_drawn_from_all_of_them() -> None:
    whole, kept = (split_by_content(labels(40), held_out=0.25, max_val=most, seed=0).val for most in (99, 7))
    assert len(whole) > 30
    assert [row for row in whole if row in kept] != whole[:7]
    assert all(row in whole for row in kept)


def test_images_and_contents_are_counted() -> None:
    splits = split_by_content(labels(5, each=3), held_out=0.2, max_val=99, seed=0)
    assert splits.counts() == {
        "train": {"images": 6, "contents": 2},
        "val": {"images": 6, "contents": 2},
        "held_out": {"images": 3, "contents": 1},
    }
