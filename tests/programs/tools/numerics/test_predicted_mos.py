"""The probabilities of the five levels of a predicted MOS."""

import pytest

from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS


def test_the_probabilities_are_a_distribution_around_the_score():
    shown = PredictedMOS(3.2, 0.8).probabilities()
    assert sum(shown.values()) == pytest.approx(1)
    assert max(shown, key=shown.get) == 3
    assert sum(level * share for level, share in shown.items()) == pytest.approx(3.2, abs=0.1)


def test_a_smaller_spread_gives_a_narrower_distribution():
    assert max(PredictedMOS(3, 0.3).probabilities().values()) > max(PredictedMOS(3, 1.0).probabilities().values())
