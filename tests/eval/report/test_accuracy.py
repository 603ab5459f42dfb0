"""Accuracy, its interval over contents, and chance."""

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


def test_chance_is_exact() -> None:
    assert chance_of_as_many(7, [0.25] * 20) == pytest.approx(binom.sf(6, 20, 0.25))
    assert chance_of_as_many(0, [0.5, 0.25]) == 1
    assert chance_of_as_many(2, [0.5, 0.25]) == pytest.approx(0.125)
