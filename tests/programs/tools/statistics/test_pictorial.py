"""The measurements that distinguish photos from other pictures, with and without a known luma."""

import numpy as np
import pytest
import skimage.data

from agenticiqa.programs.tools.numerics.pixels import single_luma
from agenticiqa.programs.tools.outside_training import reasons_for
from agenticiqa.programs.tools.statistics import parts, pictorial
from support.images import loaded


@pytest.mark.parametrize("times", [1, 2], ids=["whole", "a part of a larger image"])
def test_a_known_luma_changes_no_digit(times: int) -> None:
    photo = np.tile(skimage.data.coffee(), (times, times, 1))
    assert (photo.shape[0] * photo.shape[1] > pictorial.MOST_PIXELS) == (times > 1)
    found = pictorial.pictorial(photo, single_luma(photo))
    assert np.array_equal(found, pictorial.pictorial(photo))


def test_the_luma_of_a_loaded_image_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    image, computed = loaded(skimage.data.coffee()), []

    def counted(pixels: np.ndarray) -> np.ndarray:
        computed.append(pixels.shape)
        return single_luma(pixels)

    for module in (parts, pictorial):
        monkeypatch.setattr(module, "single_luma", counted)
    assert reasons_for(image, lambda pixels: np.zeros((320, 1, 1), np.float32)) is not None
    assert len(parts.luma_parts(image)) == len(computed) == 1
