from pathlib import Path

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from agenticiqa.programs.tools.metrics.fidelity import MS_SSIM_WEIGHTS, ms_ssim, ms_ssim_terms, psnr, ssim
from agenticiqa.programs.tools.numerics.pixels import grey, luma
from support.golden import golden_pairs
from support.ladders import LADDERS, blur, desaturate, noise, scene

PHOTO = scene()


def skimage_ssim(image: np.ndarray, reference: np.ndarray) -> float:
    return structural_similarity(
        image, reference, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )


def test_luma_keeps_grey_levels_and_weighs_primaries_as_bt601() -> None:
    levels = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    np.testing.assert_allclose(luma(levels)[0], np.arange(256), atol=1e-9)
    primaries = 255 * np.eye(3, dtype=np.uint8)[None]
    np.testing.assert_array_equal(grey(primaries)[0], [76, 150, 29])


def test_psnr_of_a_constant_difference_is_that_of_its_square() -> None:
    reference = np.full((20, 30, 3), 100, np.uint8)
    assert psnr(reference + np.uint8(51), reference) == pytest.approx(20 * np.log10(5))
    assert psnr(np.zeros_like(reference), np.full_like(reference, 255)) == 0


def test_psnr_counts_all_three_channels() -> None:
    reference = np.full((20, 30, 3), 100, np.uint8)
    one_channel = reference.copy()
    one_channel[..., 2] += 51
    assert psnr(one_channel, reference) == pytest.approx(20 * np.log10(5) + 10 * np.log10(3))


@pytest.mark.parametrize("distortion", LADDERS)
def test_psnr_agrees_with_scikit_image(distortion: str) -> None:
    image = LADDERS[distortion](2, PHOTO)
    assert psnr(image, PHOTO) == pytest.approx(peak_signal_noise_ratio(PHOTO, image), abs=1e-9)


@pytest.mark.parametrize("distortion", LADDERS)
def test_ssim_agrees_with_scikit_image(distortion: str) -> None:
    image = LADDERS[distortion](2, PHOTO)
    assert ssim(image, PHOTO) == pytest.approx(skimage_ssim(grey(image), grey(PHOTO)), abs=1e-6)


def test_ssim_of_a_negative_is_negative() -> None:
    assert ssim(255 - PHOTO, PHOTO) < 0


def test_ssim_and_ms_ssim_see_only_grey_levels() -> None:
    as_grey = grey(PHOTO).astype(np.uint8)[..., None].repeat(3, axis=2)
    assert ssim(as_grey, PHOTO) == pytest.approx(1)
    assert ms_ssim(as_grey, PHOTO) == pytest.approx(1)
    assert psnr(as_grey, PHOTO) < 30


def test_ms_ssim_is_the_weighted_product_of_its_terms() -> None:
    image = noise(3, PHOTO)
    terms = ms_ssim_terms(image, PHOTO)
    assert ms_ssim(image, PHOTO) == pytest.approx(np.prod(terms**MS_SSIM_WEIGHTS))
    assert sum(MS_SSIM_WEIGHTS) == pytest.approx(1, abs=1e-3)


def test_ms_ssim_finds_noise_in_the_fine_scales_and_less_of_it_in_the_coarse_ones() -> None:
    assert all(np.diff(ms_ssim_terms(noise(3, PHOTO), PHOTO)) > 0)


def test_ms_ssim_last_term_is_the_ssim_of_the_sixteenfold_reduced_images() -> None:
    image = scene(192, 256, seed=1)
    small, small_reference = (grey(rgb).reshape(12, 16, 16, 16).mean(axis=(1, 3)) for rgb in (image, PHOTO))
    assert ms_ssim_terms(image, PHOTO)[-1] == pytest.approx(skimage_ssim(small, small_reference), abs=1e-6)


def test_ms_ssim_of_a_negative_is_zero() -> None:
    assert ms_ssim(255 - PHOTO, PHOTO) == 0


def test_ms_ssim_forgives_fine_blur_more_than_ssim() -> None:
    assert ms_ssim(blur(2, PHOTO), PHOTO) > ssim(blur(2, PHOTO), PHOTO)


def test_psnr_sees_colour_that_is_lost() -> None:
    assert psnr(desaturate(5, PHOTO), PHOTO) < psnr(desaturate(1, PHOTO), PHOTO)


def test_psnr_and_ssim_equal_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert psnr(pair.image, pair.reference) == pytest.approx(pair.values["psnr"], abs=6e-3), pair.name
        assert ssim(pair.image, pair.reference) == pytest.approx(pair.values["ssim"], abs=1e-4), pair.name


def test_ms_ssim_terms_equal_the_official_values(shared_data: Path) -> None:
    # The official values on record are the weighted mean of the terms, an option of Wang's code; the paper, and so
    # ms_ssim, takes the product, which is the same to 0.005 here.
    for pair in golden_pairs(shared_data):
        mean = np.average(ms_ssim_terms(pair.image, pair.reference), weights=MS_SSIM_WEIGHTS)
        assert mean == pytest.approx(pair.values["ms_ssim"], abs=1e-4), pair.name
        assert ms_ssim(pair.image, pair.reference) == pytest.approx(pair.values["ms_ssim"], abs=5e-3), pair.name
