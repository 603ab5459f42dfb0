"""BLUR-EXTENT against scikit-image."""

import numpy as np
import pytest
import skimage.data
import skimage.measure

from agenticiqa.programs.tools.metrics.blur_extent import blur_extent
from support.distortion_levels import AT_LEVEL
from support.images import as_gray, coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


# The blur effect is the one of scikit-image; its luma has other weights, which shifts color images a little.
@pytest.mark.parametrize("level", [0, 2, 4])
def test_blur_extent_agrees_with_scikit_image(photo, level):
    blurred = AT_LEVEL["blur"](level, photo)
    assert blur_extent(blurred) == pytest.approx(skimage.measure.blur_effect(blurred, channel_axis=2), abs=0.01)
    plane = blurred[..., 1]
    assert blur_extent(as_gray(plane)) == pytest.approx(skimage.measure.blur_effect(plane), abs=1e-6)
