"""What the detector reads: finite numbers, the same each time, from any image that is large enough."""

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs import images
from agenticiqa.programs.offline.features import LEAST_SIDE, TEXTURE_TRAITS, traits
from agenticiqa.programs.tools.distort import distort
from support.ladders import scene


def loaded(rgb: np.ndarray) -> images.LoadedImage:
    return images.load(Image.fromarray(rgb))


@pytest.mark.parametrize("size", [(LEAST_SIDE, LEAST_SIDE), (65, 333), (1100, 1900)])
def test_every_image_has_the_same_number_of_finite_traits(size):
    for rgb in (scene(*size), np.full((*size, 3), 119, np.uint8), np.zeros((*size, 3), np.uint8)):
        found = traits(loaded(rgb))
        assert len(found.texture) == TEXTURE_TRAITS
        assert len(found.tone) == len(traits(loaded(scene(80, 80))).tone)
        assert np.isfinite(found.all).all()


def test_traits_are_taken_once_per_image_and_are_the_same_for_a_copy():
    image, copy = loaded(scene()), loaded(scene())
    assert traits(image) is traits(image)
    assert traits(image).all.tobytes() == traits(copy).all.tobytes()


def test_a_change_of_texture_leaves_the_traits_of_tone_nearly_alone():
    plain, noisy = loaded(scene()), loaded(distort(scene(), "white_noise", 1))
    spread = np.abs(traits(plain).tone) + 1
    assert np.max(np.abs(traits(noisy).tone - traits(plain).tone) / spread) < 0.2
    assert np.max(np.abs(traits(noisy).texture - traits(plain).texture)) > 0.5


def test_mirroring_hardly_changes_the_traits():
    plain, mirrored = loaded(scene()), loaded(np.ascontiguousarray(scene()[:, ::-1]))
    assert traits(plain).all == pytest.approx(traits(mirrored).all, abs=0.02)


def test_noise_in_the_colors_is_read_in_grey_levels():
    grey = np.full((200, 200, 3), 128, np.uint8)
    noisy = np.clip(grey + np.random.default_rng(0).normal(0, 10, grey.shape), 0, 255).astype(np.uint8)
    assert traits(loaded(grey)).color_noise == pytest.approx(0, abs=0.01)
    assert 5 < traits(loaded(noisy)).color_noise < 15


def test_blur_takes_the_finest_detail_away():
    plain, blurred = loaded(scene()), loaded(distort(scene(), "gaussian_blur", 3))
    assert 0 <= traits(plain).lost_detail < traits(blurred).lost_detail <= 1
