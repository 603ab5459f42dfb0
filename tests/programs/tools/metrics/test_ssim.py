"""SSIM against scikit-image and the official values."""

from pathlib import Path

import pytest

from agenticiqa.programs.tools.metrics.ssim import ssim
from agenticiqa.programs.tools.numerics.pixels import gray_levels
from support.distortion_levels import AT_LEVEL, scene
from support.golden import golden_pairs, skimage_ssim

PHOTO = scene()


@pytest.mark.parametrize("distortion", AT_LEVEL)
def test_ssim_agrees_with_scikit_image(distortion: str) -> None:
    image = AT_LEVEL[distortion](2, PHOTO)
    assert ssim(image, PHOTO) == pytest.approx(
        skimage_ssim(gray_levels(image).astype(float), gray_levels(PHOTO).astype(float)), abs=1e-6
    )


def test_ssim_of_a_negative_is_negative() -> None:
    assert ssim(255 - PHOTO, PHOTO) < 0


def test_ssim_sees_only_gray_levels() -> None:
    as_gray = gray_levels(PHOTO)[..., None].repeat(3, axis=2)
    assert ssim(as_gray, PHOTO) == pytest.approx(1)


def test_ssim_equals_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert ssim(pair.image, pair.reference) == pytest.approx(pair.values["ssim"], abs=1e-4), pair.name
