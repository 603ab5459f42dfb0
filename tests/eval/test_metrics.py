"""Correlations: SciPy's values, the effect of monotone maps, and undefined cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from agenticiqa.eval.intervals import Interval, fitted_plcc_interval
from agenticiqa.eval.metrics import (
    average_ranks,
    krcc,
    mean_absolute_error,
    places_of,
    plcc,
    rmse,
    srcc,
    why_undefined,
)

# Hours of television per week against IQ, the usual worked example of rank correlation: rho = -29/165.
IQ = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
HOURS = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]

distinct = st.lists(st.integers(-1000, 1000), min_size=3, max_size=30, unique=True)


def noisy_line(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 1, n)
    return x, 10 * x + rng.normal(0, 4, n)


def plcc_after_fit(predictions: ArrayLike, mos: ArrayLike) -> Interval:
    return fitted_plcc_interval(predictions, mos, [str(n) for n in range(len(mos))])


def test_correlations_equal_textbook_values_and_scipy_with_ties() -> None:
    assert srcc(IQ, HOURS) == pytest.approx(-29 / 165)
    assert krcc([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    rng = np.random.default_rng(1)
    x, y = rng.integers(1, 6, 80), rng.normal(size=80).round(1)
    assert srcc(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert krcc(x, y) == pytest.approx(stats.kendalltau(x, y, variant="b").statistic)
    assert plcc(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)


@settings(deadline=None)
@given(distinct)
def test_reversing_the_scale_reverses_every_sign(values: list[int]) -> None:
    falling = [-value for value in values]
    for measure in (srcc, krcc, plcc):
        assert measure(values, values) == pytest.approx(1)
        assert measure(falling, values) == pytest.approx(-1)


def test_falling_predictions_keep_their_negative_sign_after_the_fit() -> None:
    x, mos = noisy_line()
    value = plcc_after_fit(-x, mos).value
    assert value == pytest.approx(-plcc_after_fit(x, mos).value, abs=1e-4)
    assert value < -0.8


@pytest.mark.parametrize(
    ("predictions", "mos", "why"),
    [
        ([], [], "too few"),
        ([1, 2], [1, 2], "too few"),
        ([3, 3, 3, 3], [1, 2, 3, 4], "predictions"),
        ([1, 2, 3, 4], [5, 5, 5, 5], "labels"),
    ],
)
def test_undefined_figures_are_none_with_a_reason_and_never_nan(
    predictions: list[float], mos: list[float], why: str
) -> None:
    assert why in why_undefined(predictions, mos)
    assert srcc(predictions, mos) is krcc(predictions, mos) is plcc(predictions, mos) is None
    fitted = plcc_after_fit(predictions, mos)
    assert fitted.value is None
    assert why in fitted.note


@pytest.mark.parametrize("bad", [[1, 2, float("nan")], [1, 2, float("inf")], [1, 2]])
def test_infinite_numbers_and_different_lengths_are_refused(bad: list[float]) -> None:
    for measure in (srcc, krcc, plcc, plcc_after_fit, why_undefined, mean_absolute_error, rmse):
        with pytest.raises(ValueError, match=r"expected as many|finite"):
            measure(bad, [1, 2, 3])


def test_mean_absolute_and_root_mean_square_errors() -> None:
    assert mean_absolute_error([1, 5, 3], [2, 3, 3]) == pytest.approx(1)
    assert rmse([1, 5, 3], [2, 3, 3]) == pytest.approx((5 / 3) ** 0.5)
    assert mean_absolute_error([], []) is rmse([], []) is None


def test_ranks_counted_for_a_part_equal_those_of_scipy() -> None:
    values = np.random.default_rng(0).normal(size=200).round(1)
    places = places_of(values)
    for kept in (slice(None), slice(0, 150, 3), [7]):
        assert average_ranks(places[kept]).tolist() == stats.rankdata(values[kept]).tolist()
