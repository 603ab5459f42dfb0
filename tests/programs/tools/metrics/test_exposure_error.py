"""EXPOSURE-ERROR: 0 for a mean luma of 80 to 160 without white parts, rising to 1 at black and at white."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.exposure_error import exposure_error, exposure_error_map
from support.images import as_gray


@pytest.mark.parametrize(
    ("level", "error"), [(0, 1), (20, 0.75), (79, 1 / 80), (80, 0), (120, 0), (160, 0), (179, 0.2), (255, 1)]
)
def test_the_error_is_the_share_of_the_way_to_black_or_white(level: int, error: float) -> None:
    assert exposure_error(as_gray(np.full((24, 40), level))) == pytest.approx(error)


def test_a_blown_out_ninth_is_an_error_and_a_black_one_is_not() -> None:
    plane = np.full((96, 96), 110)
    plane[32:64, 32:64] = 255
    assert exposure_error(as_gray(plane)) == pytest.approx(1 / 9)
    plane[32:64, 32:64] = 0
    assert exposure_error(as_gray(plane)) == 0


def test_the_map_marks_blocks_that_are_white_and_no_black_object_in_a_well_exposed_image() -> None:
    plane = np.full((24, 32), 128)
    plane[:8, :8], plane[16:, 24:], plane[8:16, :8], plane[8:16, 8:16] = 5, 251, 6, 249
    found = exposure_error_map(as_gray(plane))
    assert found.shape == (3, 4)
    assert sorted(zip(*np.nonzero(found), strict=True)) == [(2, 3)]
    assert found.max() == 1


@pytest.mark.parametrize(("gain", "least"), [(0.25, 0.5), (2.2, 0.2)])
def test_a_dark_or_bright_image_is_that_all_over(gain: float, least: float) -> None:
    texture = np.random.default_rng(0).uniform(60, 140, (12, 16)).repeat(8, axis=0).repeat(8, axis=1)
    found = exposure_error_map(as_gray(np.clip(texture * gain, 0, 255)))
    assert found.min() > least
