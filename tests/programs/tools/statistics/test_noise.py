"""Impulses are counted, and Gaussian noise is none of them."""

import numpy as np
import pytest

from agenticiqa.programs.tools.statistics.by_name import statistic
from support.images import coffee
from support.ladders import LADDERS


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_isolated_pixels_counts_sprinkled_impulses_and_not_gaussian_noise(photo):
    sprinkled = photo.copy()
    rng = np.random.default_rng(2)
    sprinkled[rng.random(photo.shape[:2]) < 0.01] = 255
    assert statistic("isolated_pixels", sprinkled) == pytest.approx(0.01, abs=0.004)
    assert statistic("isolated_pixels", LADDERS["noise"](3, photo)) < 0.003
