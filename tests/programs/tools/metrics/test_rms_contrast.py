"""RMS-CONTRAST is the standard deviation of luma, of blocks of 8 x 8 pixels."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.rms_contrast import rms_contrast
from support.images import as_gray


def test_two_halves_differ_by_half_their_distance_from_the_mean() -> None:
    halves = np.full((64, 64), 50.0)
    halves[:, 32:] = 110
    assert rms_contrast(as_gray(halves)) == pytest.approx(30)
    halves[:, :32], halves[:, 32:] = 0, 255
    assert rms_contrast(as_gray(halves)) == pytest.approx(127.5)


def test_what_is_finer_than_a_block_is_no_contrast() -> None:
    checkers = np.indices((64, 64)).sum(axis=0) % 2 * 200.0
    assert rms_contrast(as_gray(checkers)) == pytest.approx(0)
