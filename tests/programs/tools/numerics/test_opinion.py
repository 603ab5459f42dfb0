"""An opinion's probabilities of the five levels."""

import pytest

from agenticiqa.programs.tools.numerics.opinion import Opinion


def test_the_probabilities_are_a_distribution_around_the_score():
    told = Opinion(3.2, 0.8).probabilities()
    assert sum(told.values()) == pytest.approx(1)
    assert max(told, key=told.get) == 3
    assert sum(level * share for level, share in told.items()) == pytest.approx(3.2, abs=0.1)


def test_a_surer_opinion_is_a_narrower_distribution():
    assert max(Opinion(3, 0.3).probabilities().values()) > max(Opinion(3, 1.0).probabilities().values())
