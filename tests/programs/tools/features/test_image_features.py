"""Features for the detector: finite, reproducible, from any image that is large enough."""

import numpy as np
import pytest

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.tools.features import by_name
from agenticiqa.programs.tools.features.image_features import MIN_SIDE, TEXTURE_FEATURES, features
from support.distortion_levels import scene
from support.images import loaded


@pytest.mark.parametrize("size", [(MIN_SIDE, MIN_SIDE), (65, 333), (448, 4500)])
def test_every_image_has_the_same_number_of_finite_features(size):
    for rgb in (scene(*size), np.full((*size, 3), 119, np.uint8), np.zeros((*size, 3), np.uint8)):
        found = features(loaded(rgb))
        assert len(found.texture) == TEXTURE_FEATURES
        assert len(found.tone) == len(features(loaded(scene(80, 80))).tone)
        assert np.isfinite(found.all).all()


def test_features_are_computed_once_and_equal_for_a_copy():
    image, copy = loaded(scene()), loaded(scene())
    assert features(image) is features(image)
    assert features(image).all.tobytes() == features(copy).all.tobytes()


def test_another_measurement_and_another_order_of_the_table_do_not_change_the_features():
    before, rows = features(loaded(scene())).all, by_name.STATISTICS
    shipped = dict(rows)
    rows.clear()
    rows |= {"added": lambda _: 7.0} | dict(reversed(shipped.items()))
    try:
        assert np.array_equal(features(loaded(scene())).all, before)
    finally:
        rows.clear()
        rows |= shipped


def test_a_change_of_texture_hardly_changes_the_tone_features():
    plain, noisy = loaded(scene()), loaded(distort(scene(), "white_noise", 1))
    spread = np.abs(features(plain).tone) + 1
    assert np.max(np.abs(features(noisy).tone - features(plain).tone) / spread) < 0.2
    assert np.max(np.abs(features(noisy).texture - features(plain).texture)) > 0.5


def test_mirroring_hardly_changes_the_features():
    plain, mirrored = loaded(scene()), loaded(np.ascontiguousarray(scene()[:, ::-1]))
    assert features(plain).all == pytest.approx(features(mirrored).all, abs=0.02)


def test_color_noise_is_measured_in_gray_levels():
    gray = np.full((200, 200, 3), 128, np.uint8)
    noisy = np.clip(gray + np.random.default_rng(0).normal(0, 10, gray.shape), 0, 255).astype(np.uint8)
    assert features(loaded(gray)).color_noise == pytest.approx(0, abs=0.01)
    assert 5 < features(loaded(noisy)).color_noise < 15


def test_blur_removes_the_finest_detail():
    plain, blurred = loaded(scene()), loaded(distort(scene(), "gaussian_blur", 3))
    assert 0 <= features(plain).lost_detail < features(blurred).lost_detail <= 1
