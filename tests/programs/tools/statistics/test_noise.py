"""Impulses are counted, and Gaussian noise is not."""

import numpy as np
import pytest

from agenticiqa.programs.tools.features.by_name import STATISTICS
from agenticiqa.programs.tools.metrics.noise_sigma import block_noise
from agenticiqa.programs.tools.statistics.spatial import isolated_in
from support.distortion_levels import AT_LEVEL
from support.images import coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_isolated_pixels_counts_sprinkled_impulses_and_not_gaussian_noise(photo):
    sprinkled = photo.copy()
    rng = np.random.default_rng(2)
    sprinkled[rng.random(photo.shape[:2]) < 0.01] = 255
    assert STATISTICS["isolated_pixels"](sprinkled) == pytest.approx(0.01, abs=0.004)
    assert STATISTICS["isolated_pixels"](AT_LEVEL["noise"](3, photo)) < 0.003


@pytest.mark.parametrize("size", [(3, 3), (3, 17), (24, 20)])
def test_isolated_pixels_differ_from_all_eight_neighbors(size):
    planes = np.random.default_rng(0).integers(0, 256, (6, *size)).astype(np.float32)
    high, low = [], []
    for number, plane in enumerate(planes):
        for row, column in np.ndindex(size[0] - 2, size[1] - 2):
            nine = plane[row : row + 3, column : column + 3].ravel()
            around = np.delete(nine, 4)
            high += [number] * bool(nine[4] - around.max() > 40)
            low += [number] * bool(nine[4] - around.min() < -40)
    assert [found.tolist() for found in isolated_in(planes)] == [high, low]
    assert size == (3, 3) or (high and low)


@pytest.mark.parametrize(("level", "clips"), [(0, True), (3, True), (4, False), (251, False), (252, True), (255, True)])
def test_a_block_is_clipped_where_a_tenth_of_it_is_nearly_black_or_white(level, clips):
    part = np.random.default_rng(0).normal(128, 5, (18, 34)).astype(np.float32)
    part[1:9, 1:5] = level  # 32 of the 256 pixels inside the first block, none of the second
    noise, clipped = block_noise(part)
    assert clipped.tolist() == [[clips, False]]
    assert noise[0, 1] == pytest.approx(5, rel=0.25)
    part[1:9, 4] = 128  # 24 of them
    assert not block_noise(part)[1].any()
