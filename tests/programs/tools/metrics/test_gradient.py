from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import convolve
from scipy.signal import convolve2d

from agenticiqa.programs.tools.metrics.gradient import fsim, gmsd, mdsi
from agenticiqa.programs.tools.numerics.maps import dissimilarity, enlarge, gradient_magnitude, pool, shrink, spread
from agenticiqa.programs.tools.numerics.phase import phase_congruency
from agenticiqa.programs.tools.numerics.pixels import grey, luma
from support.golden import golden_pairs
from support.ladders import desaturate, noise, scene

PHOTO = scene()


def test_gmsd_and_fsim_equal_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert gmsd(pair.image, pair.reference) == pytest.approx(pair.values["gmsd"], abs=1e-7), pair.name
        assert fsim(pair.image, pair.reference) == pytest.approx(pair.values["fsim"], abs=1e-4), pair.name


@pytest.mark.parametrize("shape", [(40, 60), (41, 59)])
def test_gmsd_agrees_with_its_definition_written_out(shape: tuple[int, int]) -> None:
    reference = scene(*shape)
    prewitt = np.outer([1, 1, 1], [1, 0, -1]) / 3
    magnitudes = []
    for image in (noise(3, reference), reference):
        # MATLAB's "same" starts half a kernel later than SciPy's for kernels of even size.
        half = convolve2d(grey(image), np.full((2, 2), 0.25))[1:, 1:][::2, ::2]
        magnitudes.append(np.hypot(*(convolve2d(half, kernel, mode="same") for kernel in (prewitt, prewitt.T))))
    first, second = magnitudes
    expected = np.std((2 * first * second + 170) / (first**2 + second**2 + 170), ddof=1)
    assert gmsd(noise(3, reference), reference) == pytest.approx(expected, abs=1e-7)


def test_fsim_sees_colour_and_gmsd_does_not() -> None:
    as_grey = grey(PHOTO).astype(np.uint8)[..., None].repeat(3, axis=2)
    assert gmsd(as_grey, PHOTO) == 0
    assert fsim(as_grey, PHOTO) < 1 - 1e-3
    assert fsim(desaturate(5, PHOTO), PHOTO) < fsim(desaturate(2, PHOTO), PHOTO)


def test_fsim_stays_a_number_when_hues_are_opposite() -> None:
    red, cyan = (np.full((64, 64, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 255, 255)))
    assert 0 < fsim(red, cyan) < 1


def test_fsim_reduces_large_images_so_that_fine_noise_counts_less() -> None:
    small, large = scene(192, 192), scene(384, 384)
    assert fsim(noise(3, large), large) > fsim(noise(3, small), small)


def test_phase_congruency_lies_between_0_and_1_and_peaks_at_an_edge() -> None:
    plane = 5 * np.random.default_rng(0).standard_normal((64, 64))
    plane[:, 32:] += 100
    (congruency,) = phase_congruency([plane])
    assert congruency.min() >= 0
    assert congruency.max() <= 1
    across = congruency.mean(axis=0)
    assert across[8:56].argmax() + 8 in (31, 32)
    assert across[31:33].min() > 3 * across[21:27].max()


def test_phase_congruency_does_not_depend_on_contrast() -> None:
    weak, strong = phase_congruency([luma(PHOTO), 7 * luma(PHOTO) + 30])
    assert np.abs(weak - strong).max() < 0.01


def test_phase_congruency_gives_noise_little() -> None:
    plane = 20 * np.random.default_rng(0).standard_normal((128, 128))
    (noisy,) = phase_congruency([plane])
    (structured,) = phase_congruency([luma(scene(128, 128))])
    assert noisy.mean() < 0.1
    assert structured.max() > 2 * noisy.mean()


@pytest.mark.parametrize("shape", [(2, 2), (2, 9), (9, 9), (31, 64)])
def test_phase_congruency_of_a_flat_plane_is_zero(shape: tuple[int, int]) -> None:
    (congruency,) = phase_congruency([np.full(shape, 80.0)])
    np.testing.assert_allclose(congruency, 0, atol=1e-6)


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(12, 20), (13, 19), (3, 50)])
def test_shrink_gives_matlabs_block_means(factor: int, shape: tuple[int, int]) -> None:
    plane = luma(scene(*shape))
    full = convolve2d(plane, np.full((factor, factor), factor**-2.0))
    same = full[factor // 2 :, factor // 2 :][: shape[0], : shape[1]]
    np.testing.assert_allclose(shrink(plane, factor), same[::factor, ::factor], atol=1e-12)


def test_shrink_takes_colour_images_channel_by_channel() -> None:
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


# What piq 0.8.0 gives for the golden pairs.
PIQ_MDSI = {"I03.png": 0.486269, "I04.png": 0.397198, "I06.png": 0.201322, "I08.png": 0.403833, "I19.png": 0.455812}


def test_mdsi_equals_what_piq_gives(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert mdsi(pair.image, pair.reference) == pytest.approx(PIQ_MDSI[pair.name], abs=1e-5), pair.name


def test_mdsi_sees_colour_and_stays_a_number_when_hues_are_opposite() -> None:
    assert mdsi(desaturate(5, PHOTO), PHOTO) > mdsi(desaturate(2, PHOTO), PHOTO) > 0
    red, cyan = PHOTO.copy(), PHOTO.copy()
    red[:20], cyan[:20] = (255, 0, 0), (0, 255, 255)
    assert 0 < mdsi(red, cyan) < 1
