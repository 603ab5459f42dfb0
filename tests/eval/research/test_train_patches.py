"""Samples for the network over patches: what is planted, what is saved as JPEG, and that draws are made by names."""

import numpy as np
import pytest

from agenticiqa.programs.tools.planted import JPEG_QUALITIES, perhaps_saved, saved_as_jpeg
from support.images import coffee

pytest.importorskip("torch", reason="training needs torch, of the extra train")
from agenticiqa.eval.research.train_patches import CLEAN, PLANTED_EACH, samples_of

pytestmark = pytest.mark.slow


def test_a_photo_is_clean_also_when_saved_and_its_copies_are_damaged():
    samples = list(samples_of("set/coffee.png", coffee()))
    assert [sample.kind == CLEAN for sample in samples] == [True, True] + [False] * (PLANTED_EACH + 1)
    assert not samples[0].share.any()
    assert not samples[1].share.any()
    assert not np.array_equal(samples[0].features, samples[1].features)
    assert all(sample.share.any() for sample in samples[2:])
    again = list(samples_of("set/coffee.png", coffee()))
    assert all(
        np.array_equal(*pair) for pair in zip((s.features for s in samples), (s.features for s in again), strict=True)
    )


def test_half_of_the_draws_are_saved_at_a_quality_of_the_range():
    photo = coffee()[:64, :64]
    possible = {saved_as_jpeg(photo, quality).tobytes() for quality in range(*JPEG_QUALITIES)}
    drawn = [perhaps_saved(photo, np.random.default_rng(seed)).tobytes() for seed in range(200)]
    saved = [pixels for pixels in drawn if pixels != photo.tobytes()]
    assert set(saved) <= possible
    assert 70 <= len(saved) <= 130
