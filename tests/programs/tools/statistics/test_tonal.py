"""Tone and color of images that were made to have a known one."""

import numpy as np
import pytest

from agenticiqa.programs.tools.statistics.by_name import statistic
from support.distortion_levels import AT_LEVEL
from support.images import as_gray, coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_clipping_is_the_share_of_black_and_of_white():
    image = np.full((64, 64, 3), 128, np.uint8)
    image[:16], image[32:] = 0, 255
    assert statistic("clipped_dark", image) == 0.25
    assert statistic("clipped_bright", image) == 0.5


def test_darkening_leaves_the_tonal_range_alone(photo):
    assert statistic("tonal_range", AT_LEVEL["darken"](3, photo)) == pytest.approx(
        statistic("tonal_range", photo), abs=0.02
    )


def test_noise_hardly_touches_tone_and_color(photo):
    noisy = AT_LEVEL["noise"](3, photo)
    for name in ("mean_luma", "rms_contrast", "colorfulness", "tonal_range"):
        assert statistic(name, noisy) == pytest.approx(statistic(name, photo), rel=0.05), name


def test_color_cast_sees_the_tint_of_what_was_neutral():
    ramp = as_gray(np.linspace(30, 220, 160)[None].repeat(160, axis=0))
    assert statistic("color_cast", ramp) < 0.1
    casts = [
        statistic("color_cast", (ramp * np.array([1, 1 - k / 2, 1 - k])).astype(np.uint8)) for k in (0.1, 0.25, 0.4)
    ]
    assert casts == sorted(casts)
    assert casts[0] > 5


@pytest.mark.parametrize("level", [0, 255])
def test_black_and_white_have_no_cast(level):
    assert statistic("color_cast", np.full((16, 16, 3), level, np.uint8)) == 0


def test_tints_are_signed_lab_coordinates():
    swatch = np.zeros((16, 16, 3), np.uint8)
    swatch[:] = (255, 0, 0)
    # CIELAB of sRGB red under D65: (53.24, 80.09, 67.20).
    assert statistic("red_tint", swatch) == pytest.approx(80.09, abs=0.05)
    assert statistic("yellow_tint", swatch) == pytest.approx(67.20, abs=0.05)
