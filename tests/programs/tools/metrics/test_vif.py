from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.vif import vif
from support.distortion_levels import blur, darken, low_contrast, noise, scene
from support.golden import golden_pairs

PHOTO = scene()


def test_vif_equals_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert vif(pair.image, pair.reference) == pytest.approx(pair.values["vif"], abs=1e-4), pair.name


def test_clean_contrast_enhancement_adds_information() -> None:
    muted = low_contrast(3, PHOTO)
    assert vif(PHOTO, muted) > 1 > vif(muted, PHOTO)


def test_another_brightness_loses_no_information() -> None:
    muted = low_contrast(3, PHOTO)
    assert vif(muted + np.uint8(20), muted) == pytest.approx(1, abs=1e-3)
    assert vif(darken(3, PHOTO), PHOTO) < 1


def test_nothing_is_left_of_an_image_by_another_one() -> None:
    assert 0 <= vif(scene(seed=1), PHOTO) < 0.1
    assert vif(np.full_like(PHOTO, 128), PHOTO) == pytest.approx(0, abs=1e-9)


def test_a_negative_carries_nothing_over() -> None:
    assert vif(255 - PHOTO, PHOTO) == pytest.approx(0, abs=1e-9)


def test_turning_both_images_by_a_right_angle_changes_little() -> None:
    upright, turned = vif(blur(2, PHOTO), PHOTO), vif(np.rot90(blur(2, PHOTO)), np.rot90(PHOTO))
    assert turned == pytest.approx(upright, rel=0.05)


def test_noise_on_a_reference_without_detail_lowers_the_value_and_brightness_does_not() -> None:
    flat = np.full((96, 96, 3), 128, np.uint8)
    assert vif(flat + np.uint8(40), flat) == pytest.approx(1)
    values = [vif(noise(level, flat), flat) for level in range(6)]
    assert values[0] == pytest.approx(1)
    assert all(np.diff(values) < 0)
    assert values[-1] < 0.05


@pytest.mark.parametrize("shape", [(65, 65), (66, 70), (95, 96), (97, 130)])
def test_every_remainder_of_blocks_and_halvings_is_measured(shape: tuple[int, int]) -> None:
    image = scene(*shape)
    values = [vif(noise(level, image), image) for level in range(4)]
    assert values[0] == pytest.approx(1)
    assert all(np.diff(values) < 0)
