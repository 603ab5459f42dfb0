"""The choice of images to rate, and the figures of the adapter fitted to them."""

import numpy as np
import pytest

from agenticiqa.eval.research.adapter_figures import RatedImages
from agenticiqa.eval.research.rating_choice import STRATA, WAYS, chosen, lines, mean_interval


def rated(features: np.ndarray, score: np.ndarray, mos: np.ndarray) -> RatedImages:
    names = np.array([str(row) for row in range(len(mos))])
    return RatedImages(features.astype(np.float32), score, mos, names, names)


def random_images(count: int) -> RatedImages:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, 12))
    return rated(features, rng.uniform(1, 5, count), np.clip(3 + features[:, 0], 1, 5))


@pytest.mark.parametrize("way", WAYS)
def test_images_are_chosen_once_and_all_but_random_ones_equally_from_all_strata(way: str) -> None:
    images = random_images(100)
    rows = chosen(images, 3 * STRATA, way, seed=0)
    assert len(set(rows.tolist())) == 3 * STRATA
    rank = np.argsort(np.argsort(images.score))
    counts = np.bincount(rank[rows] * STRATA // 100, minlength=STRATA)
    assert (set(counts.tolist()) == {3}) == (way != "random")


@pytest.mark.parametrize(("way", "kind"), [("spread", 2), ("typical", 1)])
def test_spread_takes_the_farthest_image_and_typical_one_like_many_others(way: str, kind: int) -> None:
    kinds = np.tile([0, 1, 1, 1, 1, 2], STRATA)  # in each stratum: one of kind 0, four of kind 1, one of kind 2
    features = np.eye(3)[kinds] * np.array([0.1, 3.0, 4.0])
    rows = chosen(rated(features, np.arange(len(kinds)) / 20 + 1, kinds / 1.0), 2, way, seed=1)
    first, second = kinds[rows]
    assert second == kind != first


def test_rows_have_the_same_images_not_offered_and_the_gain_of_stratified_labels() -> None:
    tables, gain = lines(random_images(120), np.full(120, 0.1), 30, draws=2)
    for row, n in zip(tables, ("90", "60"), strict=True):
        cells = row.strip("| ").split(" | ")
        assert cells[:2] == ["30", n]
        assert all(float(after) > float(cells[2]) + 0.3 for after in cells[3:7])
    assert gain.endswith("| 1.00 |")
    assert len(lines(random_images(100), np.full(100, 0.1), 30, draws=2)[0]) == 1


def test_the_interval_of_a_mean_is_students() -> None:
    assert mean_interval(np.array([0.0, 0.1, 0.2])) == "+0.100 [-0.148, +0.348]"
