"""Distortion series for the quality model: whole levels are those of ``distort``, and the target score falls."""

import numpy as np
import pytest

from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.eval.research.distortion_series import distorted, kept_curves, kept_quality
from support.distortion_levels import scene


@pytest.mark.slow
def test_each_kind_gets_worse_level_by_level() -> None:
    photo, unknown = scene(96, 128), kept_curves(np.array([], str), np.array([]), np.array([]))
    for kind in KINDS:
        assert np.array_equal(distorted(photo, kind, 3, 7), distort(photo, kind, 3, seed=7))
        kept = [kept_quality(kind, level, 1.0, np.nan, unknown) for level in np.arange(0, 5.5, 0.5)]
        assert kept[0] == 1
        assert (np.diff(kept) < 0).all()
