"""The full-reference metrics' shared steps, against MATLAB's conventions and plain NumPy."""

import numpy as np
import pytest
from scipy.ndimage import convolve
from scipy.signal import convolve2d

from agenticiqa.programs.tools.numerics.pixels import luma
from agenticiqa.programs.tools.numerics.similarity import (
    dissimilarity,
    enlarge,
    gradient_magnitude,
    pool,
    shrink,
    spread,
)
from support.distortion_levels import scene

PHOTO = scene()


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(12, 20), (13, 19), (3, 50)])
def test_shrink_gives_matlabs_block_means(factor: int, shape: tuple[int, int]) -> None:
    plane = luma(scene(*shape))
    full = convolve2d(plane, np.full((factor, factor), factor**-2.0))
    same = full[factor // 2 :, factor // 2 :][: shape[0], : shape[1]]
    np.testing.assert_allclose(shrink(plane, factor), same[::factor, ::factor], atol=1e-12)


def test_shrink_takes_color_images_channel_by_channel() -> None:
    channels = [shrink(PHOTO[..., channel], 3) for channel in range(3)]
    np.testing.assert_allclose(shrink(PHOTO, 3), np.stack(channels, axis=2))


def test_shrink_can_repeat_the_border_instead_of_adding_black() -> None:
    np.testing.assert_allclose(shrink(np.full((5, 7), 9.0), 2, border="edge"), 9)
    assert shrink(np.full((5, 7), 9.0), 2)[-1, -1] == 9 / 4


def test_gradient_magnitude_is_the_slope_over_two_pixels() -> None:
    y, x = np.mgrid[:20, :30]
    slope = gradient_magnitude(3.0 * x + 4.0 * y, (1 / 3, 1 / 3, 1 / 3))
    np.testing.assert_allclose(slope[1:-1, 1:-1], 10)


def test_gradient_magnitude_agrees_with_the_kernel_written_out() -> None:
    scharr = np.array([[3, 0, -3], [10, 0, -10], [3, 0, -3]]) / 16
    plane = luma(PHOTO)
    across, down = (convolve(plane, kernel, mode="constant") for kernel in (scharr, scharr.T))
    np.testing.assert_allclose(gradient_magnitude(plane, (3 / 16, 10 / 16, 3 / 16)), np.hypot(across, down), atol=1e-9)


def test_dissimilarity_is_zero_only_where_maps_agree() -> None:
    first, second = np.array([0.0, 5.0, 5.0, -5.0], np.float32), np.array([0.0, 5.0, 9.0, 5.0], np.float32)
    assert (1 - dissimilarity(first, second, 1)).tolist() == pytest.approx([1, 1, 91 / 107, -49 / 51])


def test_pool_is_the_plain_mean_where_nothing_has_weight() -> None:
    values = np.array([1.0, 2.0, 6.0])
    assert pool(values, np.zeros(3)) == 3
    assert pool(values, np.array([0.0, 1.0, 1.0])) == 4


@pytest.mark.parametrize("weighted", [True, False])
def test_the_mean_of_a_spread_out_loss_is_the_pooled_one(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    lost, weights = rng.random((3, 7, 9)), rng.random((3, 7, 9)) * weighted
    assert spread(lost, weights).mean() == pytest.approx(pool(lost, weights))
    assert spread(lost[0], weights[0]).shape == (7, 9)


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5])
def test_an_enlarged_map_lies_over_the_pixels_that_it_came_from(factor: int) -> None:
    image = np.zeros((83, 61))
    image[40:60, 20:40] = 1
    large = enlarge(shrink(image, factor), image.shape)
    assert large.shape == image.shape
    assert np.corrcoef(large.ravel(), image.ravel())[0, 1] > 0.85
