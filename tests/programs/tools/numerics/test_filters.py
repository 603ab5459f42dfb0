"""The filters agree with plain correlation, with and without strips."""

import numpy as np
import pytest
from scipy.ndimage import correlate1d

from agenticiqa.programs.tools.numerics import filters
from agenticiqa.programs.tools.numerics.filters import correlate, strips, whole

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3, 3), (11, 40), (47, 16), (60, 83)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_correlate_keeps_what_plain_correlation_gives_where_the_window_lies_inside(shape, axis, step):
    plane, weights = RNG.random(shape, np.float32), (0.5, -2.0, 0.25)
    inside = correlate1d(plane.astype(float), weights, axis=axis).swapaxes(0, axis)[1:-1][::step].swapaxes(0, axis)
    result = correlate(plane, weights, axis, step)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, inside, atol=1e-6)


def test_correlate_takes_planes_that_do_not_lie_together_in_memory():
    planes = RNG.random((50, 4, 70), np.float32)
    np.testing.assert_array_equal(correlate(planes[:, 1], (1.0, 2.0), 1), correlate(planes[:, 1].copy(), (1.0, 2.0), 1))


def means_of_three_by_three(image, reference):
    total = image.astype(np.float32) + reference
    padded = np.pad(total, 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return ((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:])[::2],)


@pytest.mark.parametrize("height", [1, 2, 9, 64, 101])
def test_strips_give_the_map_of_the_whole_image(monkeypatch, height):
    image, reference = RNG.integers(0, 256, (2, height, 30), np.uint8)
    (expected,) = means_of_three_by_three(image, reference)
    monkeypatch.setattr(filters, "STRIP_PIXELS", 100)
    (result,) = whole(means_of_three_by_three, image, reference, margin=2, step=2)
    np.testing.assert_array_equal(result, expected)


def test_a_large_image_comes_in_several_strips_which_do_not_overlap():
    image = np.zeros((1000, 1000), np.uint8)
    heights = [len(part) for (part,) in strips(means_of_three_by_three, image, image, margin=2, step=2)]
    assert len(heights) > 3
    assert sum(heights) == 500
