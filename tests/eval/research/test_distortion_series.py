"""Distortion series for the quality model: every kind gets worse level by level, and its target score falls."""

import numpy as np
import pytest

from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.eval.research.distortion_series import (
    NEUTRAL,
    distorted,
    kept_curves,
    kept_quality,
)
from tests.support.distortion_levels import scene

pytestmark = pytest.mark.slow

UNKNOWN = kept_curves(np.array([], str), np.array([]), np.array([]))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_levels_are_those_of_distort(kind):
    photo = scene(96, 128)
    for level in (1, 3, 5):
        assert np.array_equal(distorted(photo, kind, level, 7), distort(photo, kind, level, seed=7))


@pytest.mark.parametrize("kind", KINDS)
def test_a_level_between_two_whole_levels_distorts_between_them(kind):
    photo = scene(96, 128).astype(float)
    errors = [np.square(distorted(photo.astype("u1"), kind, level, 7) - photo).mean() for level in (0.1, 1, 2, 2.5, 3)]
    assert errors[0] == 0
    assert errors[2] <= errors[3] * 1.1
    assert errors[3] <= errors[4] * 1.1
    assert kind in NEUTRAL or KINDS[kind].strengths[0] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_quality_kept_falls_with_the_level(kind):
    for curves in (UNKNOWN, kept_curves(np.array([kind] * 5), np.arange(1.0, 6), np.array([4.5, 4.7, 3, 2, 2]))):
        kept = [kept_quality(kind, level, 1.0, np.nan, curves) for level in np.arange(0, 5.5, 0.5)]
        assert kept[0] == 1
        assert (np.diff(kept) < 0).all()


def test_every_distortion_changes_the_pixel_statistics():
    torch = pytest.importorskip("torch", reason="training needs torch, of the extra train")
    from agenticiqa.eval.research.quality_network import STATISTICS, Statistics

    def found(pixels):
        image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)
        return Statistics()(torch.from_numpy(image))[0].numpy()

    for shape in ((32, 32), (33, 200), (192, 256)):
        plain = found(scene(*shape))
        assert plain.shape == (STATISTICS,)
        assert np.isfinite(plain).all()
    for kind in KINDS:
        assert np.abs(found(distort(scene(), kind, 3)) - plain).max() > 0.05
    for flat in (0, 255):
        assert np.isfinite(found(np.full((64, 64, 3), flat, np.uint8))).all()
