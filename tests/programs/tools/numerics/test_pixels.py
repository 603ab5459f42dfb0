"""Luma and gray levels."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, gray_levels, luma


def test_luma_keeps_gray_levels_and_weighs_primaries_as_bt601() -> None:
    levels = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    np.testing.assert_allclose(luma(levels)[0], np.arange(256), atol=1e-9)
    primaries = 255 * np.eye(3, dtype=np.uint8)[None]
    np.testing.assert_array_equal(gray_levels(primaries)[0], [76, 150, 29])


def test_gray_levels_are_the_exactly_rounded_luma_of_every_color() -> None:
    """As MATLAB's rgb2gray: BT.601 in double precision, rounded; no color lies exactly between two levels."""
    weights = [int(f"{weight:.15f}"[2:]) for weight in LUMA_WEIGHTS]  # times 10^15: whole numbers, which are exact
    green, blue = np.mgrid[:256, :256]
    for red in range(256):
        colors = np.stack([np.full_like(green, red), green, blue], axis=-1).astype(np.uint8)
        exact = (weights[0] * red + weights[1] * green + weights[2] * blue + 10**15 // 2) // 10**15
        np.testing.assert_array_equal(gray_levels(colors), exact)
