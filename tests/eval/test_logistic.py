"""The curves: equal to SciPy's least squares, robust where a full search fails, and absent for too few images."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit
from scipy.special import expit

from agenticiqa.eval.logistic import Curve, fit_logistic, fit_logistic_and_line


def noisy_line(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 1, n)
    return x, 10 * x + rng.normal(0, 4, n)


def curve(x: np.ndarray, mos: np.ndarray) -> Curve:
    found = fit_logistic(x, mos)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [7, 15, 35])
def test_nearly_unrelated_numbers_are_fitted(seed: int) -> None:
    """For these numbers, a search over all four parameters reached its limit of 400 evaluations without a fit."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, int(rng.integers(8, 300)))
    mos = 0.01 * x + rng.normal(0, 1, len(x))
    line = np.polyval(np.polyfit(x, mos, 1), x)
    assert np.square(curve(x, mos)(x) - mos).sum() <= np.square(line - mos).sum() * 1.001


def test_the_fifth_parameter_fits_data_that_turn() -> None:
    x = np.linspace(-3, 3, 80)
    mos = 8 * (0.5 - 1 / (1 + np.exp(3 * (x - 0.5)))) - 2 * x + 1
    five = fit_logistic_and_line(x, mos)
    assert five is not None
    assert five(x) == pytest.approx(mos, abs=1e-3)
    assert np.square(curve(x, mos)(x) - mos).mean() > 0.1


def test_a_falling_curve_is_marked() -> None:
    x, mos = noisy_line()
    assert curve(-x, mos).falls
    assert not curve(x, mos).falls


@pytest.mark.parametrize(("images", "four", "five"), [(4, False, False), (5, True, False), (6, True, True)])
def test_a_curve_needs_more_images_than_it_has_parameters(images: int, four: bool, five: bool) -> None:
    x, mos = noisy_line(images)
    assert (fit_logistic(x, mos) is not None, fit_logistic_and_line(x, mos) is not None) == (four, five)


def test_the_fit_is_the_least_squares_curve_that_scipy_finds() -> None:
    def logistic(x: np.ndarray, upper: float, lower: float, center: float, width: float) -> np.ndarray:
        return (upper - lower) / (1 + np.exp(-(x - center) / abs(width))) + lower

    rng = np.random.default_rng(2)
    x = rng.uniform(1, 5, 300)
    mos = logistic(x, 90, 15, 2.8, 0.4) + rng.normal(0, 8, 300)
    best, _ = curve_fit(logistic, x, mos, p0=[mos.max(), mos.min(), x.mean(), x.std()])
    assert curve(x, mos)(x) == pytest.approx(logistic(x, *best), abs=0.01)


def test_a_steep_step_beside_outliers_is_found() -> None:
    rng = np.random.default_rng(157)
    n = int(rng.integers(8, 60))
    x = rng.normal(0, 1, n)
    x[:2] *= 20
    center, width = np.quantile(x, rng.uniform(0.1, 0.9)), 10 ** rng.uniform(-3, 0) * x.std()
    clean = expit((x - center) / width)
    mos = clean + rng.normal(0, 10 ** rng.uniform(-3, -0.5), n)
    assert np.square(curve(x, mos)(x) - mos).sum() <= np.square(clean - mos).sum()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_line_with_any_noise_is_fitted_by_a_monotone_curve(seed: int) -> None:
    x, mos = noisy_line(60, seed)
    fitted = curve(x, mos)(x)
    assert (np.diff(fitted[np.argsort(x)]) >= -1e-9).all()
    assert np.mean((fitted - mos) ** 2) <= np.var(mos) * (1 + 1e-6)


def test_rounding_errors_do_not_change_an_exponential_fit() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 72)
    mos = 5 - np.exp(-x / 0.75) / 4 + rng.normal(0, 0.2, 72)  # the logistic's limit: its center is far away
    whole, part = curve(x, mos), slice(18, None)
    fits = [
        fit_logistic(near[part], mos[part], whole)(x) for near in (x * (1 + rng.normal(0, 1e-13, 72)) for _ in range(4))
    ]  # type: ignore[misc]
    assert np.ptp(fits, axis=0).max() < 1e-4
