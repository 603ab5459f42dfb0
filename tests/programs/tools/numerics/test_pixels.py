"""Luma and gray levels."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import gray_levels, luma


def test_luma_keeps_gray_levels_and_weighs_primaries_as_bt601() -> None:
    levels = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    np.testing.assert_allclose(luma(levels)[0], np.arange(256), atol=1e-9)
    primaries = 255 * np.eye(3, dtype=np.uint8)[None]
    np.testing.assert_array_equal(gray_levels(primaries)[0], [76, 150, 29])
