"""MS-SSIM against its definition, scikit-image and the official values."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.ms_ssim import WEIGHTS, ms_ssim, ms_ssim_terms
from agenticiqa.programs.tools.metrics.psnr import psnr
from agenticiqa.programs.tools.metrics.ssim import ssim
from agenticiqa.programs.tools.numerics.pixels import gray_levels
from support.distortion_levels import blur, noise, scene
from support.golden import golden_pairs, skimage_ssim

PHOTO = scene()


def test_ms_ssim_sees_only_gray_levels() -> None:
    as_gray = gray_levels(PHOTO)[..., None].repeat(3, axis=2)
    assert ms_ssim(as_gray, PHOTO) == pytest.approx(1)
    assert psnr(as_gray, PHOTO) < 30


def test_ms_ssim_is_the_weighted_product_of_its_terms() -> None:
    image = noise(3, PHOTO)
    terms = ms_ssim_terms(image, PHOTO)
    assert ms_ssim(image, PHOTO) == pytest.approx(np.prod(terms**WEIGHTS))
    assert sum(WEIGHTS) == pytest.approx(1, abs=1e-3)


def test_ms_ssim_finds_noise_in_the_fine_scales_and_less_of_it_in_the_coarse_ones() -> None:
    assert all(np.diff(ms_ssim_terms(noise(3, PHOTO), PHOTO)) > 0)


def test_ms_ssim_last_term_is_the_ssim_of_the_sixteenfold_reduced_images() -> None:
    image = scene(192, 256, seed=1)
    small, small_reference = (gray_levels(rgb).reshape(12, 16, 16, 16).mean(axis=(1, 3)) for rgb in (image, PHOTO))
    assert ms_ssim_terms(image, PHOTO)[-1] == pytest.approx(skimage_ssim(small, small_reference), abs=1e-6)


def test_ms_ssim_of_a_negative_is_zero() -> None:
    assert ms_ssim(255 - PHOTO, PHOTO) == 0


def test_ms_ssim_forgives_fine_blur_more_than_ssim() -> None:
    assert ms_ssim(blur(2, PHOTO), PHOTO) > ssim(blur(2, PHOTO), PHOTO)


def test_ms_ssim_terms_equal_the_official_values(shared_data: Path) -> None:
    # The official values on record are the weighted mean of the terms, an option of Wang's code; the paper, and so
    # ms_ssim, takes the product, which is the same to 0.005 here.
    for pair in golden_pairs(shared_data):
        mean = np.average(ms_ssim_terms(pair.image, pair.reference), weights=WEIGHTS)
        assert mean == pytest.approx(pair.values["ms_ssim"], abs=1e-4), pair.name
        assert ms_ssim(pair.image, pair.reference) == pytest.approx(pair.values["ms_ssim"], abs=5e-3), pair.name
