"""The share of pairs in the right order: the pairs counted one by one, and the share without one content."""

from itertools import combinations

import numpy as np
import pytest

from agenticiqa.eval.intervals import blocks_of
from agenticiqa.eval.report import pairs
from agenticiqa.eval.report.pairs import pairwise_accuracy


def labeled(n: int = 60, contents: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    mos = rng.normal(50, 20, n).round(0)
    return (mos + rng.normal(0, 15, n)).round(-1), mos, [f"scene {number % contents}" for number in range(n)]


def test_pairs_count_if_their_mos_differ_by_more_than_the_deviation() -> None:
    x, mos, contents = labeled()
    std = np.random.default_rng(1).uniform(1, 20, len(x))
    right, counted = 0.0, 0
    for i, j in combinations(range(len(x)), 2):
        if abs(mos[i] - mos[j]) > np.hypot(std[i], std[j]):
            counted += 1
            right += 0.5 + 0.5 * np.sign((x[i] - x[j]) * (mos[i] - mos[j]))
    order = pairwise_accuracy(x, mos, blocks_of(contents), std)
    assert order.value == pytest.approx(right / counted)
    assert order.note == f"{counted:,} pairs"
    assert order.low < order.value < order.high


def test_constant_predictions_have_a_pairwise_accuracy_of_one_half() -> None:
    assert pairwise_accuracy(np.full(9, 3.0), np.arange(9.0), np.arange(9)).value == 0.5


def test_for_many_images_pairs_with_deviations_are_sampled_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    x, mos, contents = labeled(900, 30)
    std, blocks = np.full(900, 20.0), blocks_of(contents)
    exact, of_all = pairwise_accuracy(x, mos, blocks), pairwise_accuracy(x, mos, blocks, std)
    monkeypatch.setattr(pairs, "MOST_IMAGES", 500)
    assert pairwise_accuracy(x, mos, blocks) == exact
    share = pairwise_accuracy(x, mos, blocks, std)
    assert share.value == pytest.approx(of_all.value, abs=0.03)
    assert share.note.endswith("pairs; 500 images were drawn at random")


def test_a_pairwise_accuracy_near_1_has_a_useful_interval() -> None:
    """Without one of nine contents the share is exactly 1."""
    mos = np.arange(9.0)
    x = mos + np.where(mos == 8, -1.5, 0)
    share = pairwise_accuracy(x, mos, np.arange(9))
    assert share.value == pytest.approx(35 / 36)
    assert 0.5 < share.low < share.value < share.high < 1
    complete = pairwise_accuracy(mos, mos, np.arange(9))
    assert (complete.value, complete.high) == (1, 1)
    assert 0.4 < complete.low < 0.9
