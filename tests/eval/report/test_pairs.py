"""Figures of pairs: SciPy's tau-b, the pairs counted one by one, and the figures without one content."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau

from agenticiqa.eval.intervals import blocks_of, interval
from agenticiqa.eval.metrics import krcc
from agenticiqa.eval.report import pairs
from agenticiqa.eval.report.pairs import pair_intervals


def labeled(n: int = 60, contents: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    mos = rng.normal(50, 20, n).round(0)
    return (mos + rng.normal(0, 15, n)).round(-1), mos, [f"scene {number % contents}" for number in range(n)]


def test_tau_and_its_interval_equal_those_recomputed_without_each_content() -> None:
    x, mos, contents = labeled()
    tau, _ = pair_intervals(x, mos, blocks_of(contents))
    assert tau.value == pytest.approx(kendalltau(x, mos).statistic)
    expected = interval(krcc, x, mos, contents)
    assert (tau.low, tau.high) == pytest.approx((expected.low, expected.high))


def test_pairs_count_if_their_mos_differ_by_more_than_the_deviation() -> None:
    x, mos, contents = labeled()
    std = np.random.default_rng(1).uniform(1, 20, len(x))
    right, counted = 0.0, 0
    for i, j in combinations(range(len(x)), 2):
        if abs(mos[i] - mos[j]) > np.hypot(std[i], std[j]):
            counted += 1
            right += 0.5 + 0.5 * np.sign((x[i] - x[j]) * (mos[i] - mos[j]))
    _, order = pair_intervals(x, mos, blocks_of(contents), std)
    assert order.value == pytest.approx(right / counted)
    assert order.note == f"{counted:,} pairs"
    assert order.low < order.value < order.high


def test_constant_predictions_have_a_pairwise_accuracy_of_one_half() -> None:
    tau, order = pair_intervals(np.full(9, 3.0), np.arange(9.0), np.arange(9))
    assert (tau.value, order.value) == (None, 0.5)


def test_for_many_images_tau_is_exact_and_pairs_with_deviations_are_sampled_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, mos, contents = labeled(900, 30)
    std = np.full(900, 20.0)
    exact = pair_intervals(x, mos, blocks_of(contents))
    _, of_all = pair_intervals(x, mos, blocks_of(contents), std)
    monkeypatch.setattr(pairs, "MOST_IMAGES", 500)
    assert pair_intervals(x, mos, blocks_of(contents)) == exact
    tau, share = pair_intervals(x, mos, blocks_of(contents), std)
    assert tau == exact[0]
    assert tau.value == pytest.approx(kendalltau(x, mos).statistic)
    assert share.value == pytest.approx(of_all.value, abs=0.03)
    assert share.note.endswith("pairs; 500 images were drawn at random")


def test_a_pairwise_accuracy_near_1_has_a_useful_interval() -> None:
    """Without one of nine contents the share is exactly 1."""
    mos = np.arange(9.0)
    x = mos + np.where(mos == 8, -1.5, 0)
    _, share = pair_intervals(x, mos, np.arange(9))
    assert share.value == pytest.approx(35 / 36)
    assert 0.5 < share.low < share.value < share.high < 1
    _, complete = pair_intervals(mos, mos, np.arange(9))
    assert (complete.value, complete.high) == (1, 1)
    assert 0.4 < complete.low < 0.9
