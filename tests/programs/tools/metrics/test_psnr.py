"""PSNR against its formula, scikit-image and the official values."""

from pathlib import Path

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio

from agenticiqa.programs.tools.metrics.psnr import psnr
from support.distortion_levels import AT_LEVEL, desaturate, scene
from support.golden import golden_pairs

PHOTO = scene()


def test_psnr_of_a_constant_difference_is_that_of_its_square() -> None:
    reference = np.full((20, 30, 3), 100, np.uint8)
    assert psnr(reference + np.uint8(51), reference) == pytest.approx(20 * np.log10(5))
    assert psnr(np.zeros_like(reference), np.full_like(reference, 255)) == 0


def test_psnr_counts_all_three_channels() -> None:
    reference = np.full((20, 30, 3), 100, np.uint8)
    one_channel = reference.copy()
    one_channel[..., 2] += 51
    assert psnr(one_channel, reference) == pytest.approx(20 * np.log10(5) + 10 * np.log10(3))


@pytest.mark.parametrize("distortion", AT_LEVEL)
def test_psnr_agrees_with_scikit_image(distortion: str) -> None:
    image = AT_LEVEL[distortion](2, PHOTO)
    assert psnr(image, PHOTO) == pytest.approx(peak_signal_noise_ratio(PHOTO, image), abs=1e-9)


def test_psnr_sees_color_that_is_lost() -> None:
    assert psnr(desaturate(5, PHOTO), PHOTO) < psnr(desaturate(1, PHOTO), PHOTO)


def test_psnr_equals_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert psnr(pair.image, pair.reference) == pytest.approx(pair.values["psnr"], abs=6e-3), pair.name
