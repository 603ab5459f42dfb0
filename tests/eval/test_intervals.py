"""Intervals have their nominal coverage, widen with dependence, and narrow if differences are paired."""

import numpy as np
import pytest

from agenticiqa.eval.intervals import (
    WIDENED,
    Interval,
    after_curve,
    difference_interval,
    error_interval,
    fitted_plcc_interval,
    interval,
    rmse_interval,
)
from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.metrics import mean_absolute_error, plcc, srcc
from support.populations import coverage


def pairs(n: int, rho: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)


def each(n: int) -> list[str]:
    return [f"scene {index}" for index in range(n)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "contents"), [("mild", 6), ("hard", 10), ("chance", 10)])
def test_about_95_of_100_intervals_cover_the_truth_even_with_few_contents(kind: str, contents: int) -> None:
    """With 60 simulated sets, a share of .95 has a margin of .055."""
    for name, share in coverage(kind, contents, sets=60).items():
        assert share >= 0.87, name


def test_the_curve_is_refitted_without_each_of_few_contents() -> None:
    """The RMSE on the fitted images is too small, so its interval is wider than with a fixed curve."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=72) + np.repeat(rng.normal(size=8), 9)
    y = np.tanh(x) + 0.4 * rng.normal(size=72) + 0.3 * np.repeat(rng.normal(size=8), 9)
    names = [f"scene {number // 9}" for number in range(72)]
    _, found = after_curve(fit_logistic, x, y, names)
    curve = fit_logistic(x, y)
    stays = rmse_interval(curve(x), y, names)
    assert found.value == pytest.approx(stays.value)
    assert found.low < stays.low < stays.high < found.high


def test_the_value_lies_in_its_interval_and_more_images_narrow_it() -> None:
    few, many = (interval(srcc, *pairs(n, 0.6, 3), each(n)) for n in (40, 640))
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.5 * (few.high - few.low)
    assert (few.n, many.n) == (40, 640)


def test_thousands_of_contents_are_deleted_in_blocks() -> None:
    calls = 0

    def counting(x: np.ndarray, y: np.ndarray) -> float | None:
        nonlocal calls
        calls += 1
        return srcc(x, y)

    x, y = pairs(5000, 0.6, 0)
    found = interval(counting, x, y, each(5000))
    assert calls == 201
    assert found.high - found.low == pytest.approx(2 * 1.96 * 1.06**0.5 * (1 - 0.6**2) / 5000**0.5, rel=0.25)


def test_copies_of_a_content_do_not_narrow_the_interval() -> None:
    x, y = pairs(40, 0.6, 5)
    once = interval(srcc, x, y, each(40))
    copied = interval(srcc, np.tile(x, 8), np.tile(y, 8), each(40) * 8)
    as_if_independent = interval(srcc, np.tile(x, 8), np.tile(y, 8), each(320))
    width = once.high - once.low
    assert copied.high - copied.low == pytest.approx(width, rel=0.15)
    assert as_if_independent.high - as_if_independent.low < 0.5 * width


def test_pairing_cancels_shared_errors() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=100)
    first = y + rng.normal(size=100)
    second = first + 0.05 * rng.normal(size=100)
    paired = difference_interval(srcc, first, second, y, each(100))
    alone = interval(srcc, first, y, each(100))
    assert paired.high - paired.low < 0.3 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([1, 2], [1, 2]), ([2, 2, 2, 2], [1, 2, 3, 4])], ids=["none", "two", "constant"]
)
def test_an_undefined_figure_has_a_reason_instead_of_an_interval(x: list[float], y: list[float]) -> None:
    for figure in (
        interval(srcc, x, y, each(len(x))),
        fitted_plcc_interval(x, y, each(len(x))),
        difference_interval(srcc, x, y, y, each(len(x))),
    ):
        assert figure.value is figure.low is figure.high is None
        assert figure.note


@pytest.mark.parametrize("contents", [1, 2, 3])
def test_few_contents_have_a_value_and_no_interval(contents: int) -> None:
    x, y = pairs(12, 0.8, 0)
    figure = interval(srcc, x, y, [str(n % contents) for n in range(12)])
    assert figure.value == srcc(x, y)
    assert figure.low is None
    assert figure.note == f"too few scenes for an interval ({contents}, at least 4)"


def test_the_fitted_plcc_of_a_curve_is_nearly_one_with_a_narrow_interval() -> None:
    x = np.linspace(1, 5, 80)
    mos = 100 / (1 + np.exp(-(x - 3) / 0.3)) + np.random.default_rng(0).normal(0, 1, 80)
    fitted, raw = fitted_plcc_interval(x, mos, each(80)), interval(plcc, x, mos, each(80))
    assert fitted.low > raw.high
    assert fitted.note == ""


def test_four_images_are_not_fitted_and_the_note_says_raw() -> None:
    x, y = [1.0, 2.0, 4.0, 3.0], [1.0, 3.0, 2.0, 4.0]
    figure = fitted_plcc_interval(x, y, each(4))
    assert figure.value == plcc(x, y)
    assert "raw" in figure.note


@pytest.mark.parametrize(
    ("figure", "spec", "text"),
    [
        (Interval(0.8119, 0.79, 0.8341, 9), ".3f", "0.812 [0.790, 0.834]"),
        (Interval(0.8119, 0.79, 0.8341, 9), ".2f", "0.81 [0.79, 0.83]"),
        (Interval(0.0119, -0.02, 0.05, 9), "+.3f", "+0.012 [-0.020, +0.050]"),
        (Interval(0.8119, None, None, 9, "too few"), ".3f", "0.812"),
        (Interval(None, None, None, 9, "too few"), ".3f", "-"),
    ],
)
def test_an_interval_is_printed_in_one_way(figure: Interval, spec: str, text: str) -> None:
    assert format(figure, spec) == text


def test_a_figure_that_is_undefined_without_one_content_has_no_interval() -> None:
    x, y = [1.0, 1.0, 1.0, 5.0], [1.0, 2.0, 3.0, 4.0]
    figure = interval(srcc, x, y, each(4))
    assert figure.value is not None
    assert (figure.low, figure.high) == (None, None)
    assert "undefined when one of the scenes is left out" in figure.note


def test_an_error_has_an_interval_of_at_least_zero() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    predictions = np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    found = error_interval(mean_absolute_error, predictions, y, each(5))
    assert found.value == pytest.approx(0.2)
    assert found.low == 0
    assert found.high > 0.2


@pytest.mark.parametrize(("noise", "is_widened"), [(9.0, True), (0.1, False)])
def test_a_widened_interval_of_a_fitted_plcc_says_so(noise: float, is_widened: bool) -> None:
    rng, x = np.random.default_rng(0), np.arange(30.0)
    fitted, _ = after_curve(fit_logistic, x, x / 10 + rng.normal(0, noise, 30), [*map(str, range(30))])
    assert (fitted.note == WIDENED) is is_widened


def test_an_error_of_few_scenes_without_a_bound_has_no_interval() -> None:
    """One scene with errors of nearly 0 beside others makes an upper bound of 28 digits."""
    mos, scenes = np.tile([1.0, 2.0, 3.0, 4.0], 4), [name for name in "abcd" for _ in range(4)]
    errors = np.repeat([0.5, 1e-9, 1e-9, 1e-9], 4)
    found = rmse_interval(mos + errors, mos, scenes)
    assert (found.value, found.low, found.high) == (pytest.approx(0.25), None, None)
    assert found.note == "no interval: too few scenes to bound the error"
