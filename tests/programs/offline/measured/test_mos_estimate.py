"""Probabilities of the five levels: a distribution that no distortion ever improves."""

import numpy as np
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agenticiqa.programs import images
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.programs.offline.measured.mos_estimate import (
    LOSS_PER_SEVERITY,
    RESIDUAL_STD,
    UNDISTORTED_LEVEL,
    expected_level,
)
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import ALL_LEVELS, AT_LEVEL

severities = st.lists(st.floats(0, 4), min_size=len(DETECTABLE), max_size=len(DETECTABLE))


def spoken_for(found: dict[str, Finding]) -> dict[int, float]:
    return PredictedMOS(expected_level(found), RESIDUAL_STD).probabilities()


def findings(values: list[float]) -> dict[str, Finding]:
    return {category: Finding(value, "", "") for category, value in zip(DETECTABLE, values, strict=True)}


def mean(probabilities: dict[int, float]) -> float:
    return sum(level * share for level, share in probabilities.items())


@given(severities)
def test_the_probabilities_are_a_distribution_over_the_five_levels(values):
    probabilities = spoken_for(findings(values))
    assert list(probabilities) == [1, 2, 3, 4, 5]
    assert all(share >= 0 for share in probabilities.values())
    assert sum(probabilities.values()) == pytest.approx(1)


@given(severities, st.integers(0, len(DETECTABLE) - 1), st.floats(0, 4))
def test_a_worse_severity_never_raises_the_quality(values, index, other):
    worse, better = values.copy(), values.copy()
    worse[index], better[index] = max(values[index], other), min(values[index], other)
    assert expected_level(findings(worse)) <= expected_level(findings(better))
    assert mean(spoken_for(findings(worse))) <= mean(spoken_for(findings(better))) + 1e-12


def test_an_undistorted_image_is_good_and_a_ruined_one_bad():
    assert mean(spoken_for(findings([0] * len(DETECTABLE)))) >= 4
    assert expected_level(findings([0] * len(DETECTABLE))) == UNDISTORTED_LEVEL
    assert mean(spoken_for(findings([4] * len(DETECTABLE)))) < 1.5


@pytest.mark.parametrize("category", DETECTABLE)
def test_every_category_counts(category):
    assert LOSS_PER_SEVERITY[category] > 0
    extreme = findings([0] * len(DETECTABLE)) | {category: Finding(4, "", "")}
    assert expected_level(extreme) < UNDISTORTED_LEVEL - 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blur", "noise", "jpeg", "darken", "low_contrast"])
@pytest.mark.parametrize("referenced", [True, False])
def test_the_level_falls_from_the_first_to_the_last_step(kind, referenced):
    photo = np.ascontiguousarray(skimage.data.coffee()[60:348, 140:460])
    steps = [images.load(Image.fromarray(AT_LEVEL[kind](level, photo))) for level in ALL_LEVELS]
    reference = steps[0] if referenced else None
    levels = [mean(spoken_for(findings_of(step, reference))) for step in steps]
    assert levels[0] > max(levels) - 0.1  # a slight change of tone may be invisible
    assert np.argmin(levels) == 5
