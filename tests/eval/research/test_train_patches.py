"""Samples for the networks on patches: planted damage, JPEG copies, and draws that depend on names only."""

import numpy as np
import pytest

from support.images import coffee

pytest.importorskip("torch", reason="training needs torch, of the extra train")
from agenticiqa.eval.research.train_patches import CLEAN, PLANTED_EACH, samples_of

pytestmark = pytest.mark.slow


def test_a_photo_and_its_jpeg_are_clean_and_other_copies_are_damaged():
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
