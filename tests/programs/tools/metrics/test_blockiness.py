"""BLOCKINESS: 1 without a grid, and the same wherever the grid starts."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.blockiness import blockiness
from support.distortion_levels import AT_LEVEL
from support.images import coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_blockiness_is_one_without_a_grid_and_found_wherever_the_grid_starts(photo):
    assert blockiness(photo) == pytest.approx(1, abs=0.1)
    compressed = AT_LEVEL["jpeg"](4, photo)
    assert blockiness(compressed) > 2.5
    assert blockiness(compressed[3:, 5:]) == pytest.approx(blockiness(compressed), rel=0.1)
