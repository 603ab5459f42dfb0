"""Division by content, and the labels' scale."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenticiqa.eval.datasets import Labelled
from agenticiqa.eval.optimize.splits import divide, scale_of
from agenticiqa.programs.errors import UserError


def label(number: int, content: str, mos: float = 3.0) -> Labelled:
    name = f"{number}.png"
    return Labelled(name, Path(name), None, mos, None, None, None, None, None, content)


def labels(contents: int, each: int = 3) -> list[Labelled]:
    return [label(row, f"scene {row % contents}", row) for row in range(contents * each)]


@settings(deadline=None)
@given(st.integers(3, 40), st.floats(0.05, 0.9), st.integers(0, 99))
def test_no_content_is_in_two_parts_and_none_is_empty(contents: int, share: float, seed: int) -> None:
    rows = labels(contents)
    parts = divide(rows, held_out=share, most_val=1000, seed=seed)
    seen = [{row.content for row in part} for part in (parts.train, parts.val, parts.held_out)]
    assert all(seen)
    assert sum(map(len, seen)) == len(set.union(*seen)) == contents
    assert sorted([*parts.train, *parts.val, *parts.held_out], key=lambda row: row.mos) == rows


def test_the_seed_decides_the_division() -> None:
    rows = labels(20)
    assert divide(rows, held_out=0.3, most_val=99, seed=4) == divide(rows, held_out=0.3, most_val=99, seed=4)
    assert divide(rows, held_out=0.3, most_val=99, seed=4) != divide(rows, held_out=0.3, most_val=99, seed=5)


def test_the_held_out_share_is_kept_and_validation_is_capped() -> None:
    parts = divide(labels(40), held_out=0.25, most_val=7, seed=0)
    assert len(parts.held_out) == 30
    assert len(parts.val) == 7
    assert len(parts.train) == 54


@pytest.mark.parametrize("share", [0, 1, -0.2, 7])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        divide(labels(5), held_out=share, most_val=9, seed=0)


def test_two_contents_cannot_be_divided_in_three() -> None:
    with pytest.raises(UserError, match="2 contents"):
        divide(labels(2), held_out=0.3, most_val=9, seed=0)


def test_opinion_scores_map_linearly_to_1_to_5_and_are_clipped() -> None:
    scale = scale_of([label(0, "a", 20), label(1, "b", 60)])
    assert [scale.to_levels(mos) for mos in (20, 40, 60, 0, 90)] == [1, 3, 5, 1, 5]
    assert scale_of([label(0, "a", 20)], (0, 100)).to_levels(25) == 2


@pytest.mark.parametrize("ends", [(5, 5), (5, 1), None])
def test_a_scale_without_extent_is_refused(ends: tuple[float, float] | None) -> None:
    with pytest.raises(UserError, match="scale of the labels"):
        scale_of([label(0, "a"), label(1, "b")], ends)
