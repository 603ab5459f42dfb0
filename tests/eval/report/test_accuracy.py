"""Accuracy, its interval over contents, and chance."""

import numpy as np
import pytest
from scipy.stats import binom

from agenticiqa.eval.intervals import accuracy, wilson
from agenticiqa.eval.report.questions import chance_of_as_many


def test_independent_questions_have_nearly_wilsons_interval() -> None:
    hits = [True, False, True] * 100
    found = accuracy(hits, [str(number) for number in range(300)])
    assert (found.low, found.high) == pytest.approx(wilson(200, 300), abs=0.003)
    assert found.value == pytest.approx(2 / 3)


def test_correlated_questions_of_one_content_count_less() -> None:
    hits = [content % 2 == 0 for content in range(20) for _ in range(10)]
    found = accuracy(hits, [str(content) for content in range(20) for _ in range(10)])
    assert found.low is not None
    assert found.high is not None
    assert found.low < wilson(10, 20)[0]  # 200 answers are worth no more than 20
    assert found.high > wilson(10, 20)[1]


def test_few_contents_have_no_interval_and_complete_agreement_counts_contents() -> None:
    assert accuracy([True, False], ["a", "b"]).low is None
    assert accuracy([], []).value is None
    sure = accuracy([True] * 40, [str(number // 4) for number in range(40)])
    assert (sure.low, sure.high) == pytest.approx(wilson(10, 10))


@pytest.mark.parametrize("contents", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_the_interval_covers(contents: int) -> None:
    """Contents of different difficulty, five questions each: 95 % within the error of 1,000 simulations."""
    rng, covered, truth = np.random.default_rng(3), 0, 0.7
    names = [str(content) for content in range(contents) for _ in range(5)]
    for _ in range(1000):
        difficulty = rng.beta(truth * 3, (1 - truth) * 3, contents)
        found = accuracy(list(rng.random(5 * contents) < np.repeat(difficulty, 5)), names)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert 0.925 <= covered / 1000 <= 0.985


def test_chance_is_exact() -> None:
    assert chance_of_as_many(7, [0.25] * 20) == pytest.approx(binom.sf(6, 20, 0.25))
    assert chance_of_as_many(0, [0.5, 0.25]) == 1
    assert chance_of_as_many(2, [0.5, 0.25]) == pytest.approx(0.125)
