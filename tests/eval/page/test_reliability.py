"""The expected calibration error and the bins of the reliability diagram, on cases worked out by hand."""

import numpy as np
import pytest

from agenticiqa.eval.page.reliability import calibration_error, calibration_error_interval, reliability, top_level


def test_the_error_is_the_weighted_distance_of_confidence_and_share() -> None:
    confidence = [0.95, 0.95, 0.95, 0.95, 0.55]
    right = [1, 1, 1, 0, 0]
    assert calibration_error(confidence, right) == pytest.approx(0.8 * abs(0.75 - 0.95) + 0.2 * abs(0 - 0.55))
    assert calibration_error([], []) is None
    assert calibration_error([1.0, 1.0], [1, 1]) == 0


def test_bins_hold_counts_and_wilson_ends() -> None:
    low, high = reliability([0.95] * 8 + [0.31, 0.39], [1] * 8 + [0, 1])
    assert (low.n, low.confidence, low.right) == (2, pytest.approx(0.35), 0.5)
    assert (high.n, high.right, high.high) == (8, 1.0, 1.0)
    assert 0.6 < high.low < 0.7, "8 of 8: 0.676 by Wilson's formula"


def test_probabilities_that_are_true_have_a_small_error() -> None:
    random = np.random.default_rng(1)
    confidence = random.uniform(0.2, 1, 20_000)
    right = random.uniform(size=20_000) < confidence
    contents = [f"c{number % 50}" for number in range(20_000)]
    true = calibration_error_interval(confidence, right, contents)
    bold = calibration_error_interval(np.minimum(1, confidence + 0.2), right, contents)
    assert 0 < (true.value or 0) < 0.02
    assert (bold.low or 0) > 0.1


def test_the_most_probable_level() -> None:
    level, confidence = top_level([[0.1, 0.2, 0.5, 0.1, 0.1], [0, 0, 0, 0.4, 0.6]])
    assert (level.tolist(), confidence.tolist()) == ([3, 5], [0.5, 0.6])
