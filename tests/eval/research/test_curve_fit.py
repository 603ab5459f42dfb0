"""Curves fitted to points: monotone for any data, 5 for perfect images, refused for unsuitable data."""

from dataclasses import replace

import numpy as np
import pytest

from agenticiqa.eval.research.curve_fit import Points, fit_curve, root_mean_square_error
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS

pytestmark = pytest.mark.slow

HIGHER = replace(TOOLS["SSIM"], raw_range=(0.0, 1.0))
LOWER = replace(HIGHER, higher_is_better=False)


def points(raw, quality, **more) -> Points:
    raw, quality = np.asarray(raw, float), np.asarray(quality, float)
    return Points(raw, quality, tuple(str(i % max(1, len(raw) // 4)) for i in range(len(raw))), **more)


def related(slope: float = 3.0, noise: float = 0.1, n: int = 200, seed: int = 0, **more) -> Points:
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0, 1, n)
    return points(raw, np.clip(3 + slope * (raw - 0.5) + rng.normal(0, noise, n), 1, 5), origin="made up", **more)


@pytest.mark.parametrize(("slope", "card"), [(3.0, HIGHER), (-3.0, LOWER)])
def test_a_curve_follows_the_data_in_the_tools_direction(slope, card):
    given = related(slope)
    fit = fit_curve(given, card)
    assert fit.curve.is_monotone()
    assert fit.residual == root_mean_square_error(fit.curve, given) < 0.15
    assert fit.srcc.value > 0.9
    assert "made up, n=200, 20" in fit.curve.fitted_on
    assert f"residual {fit.residual:.2f}, SRCC {fit.srcc.value:.3f}" in fit.curve.fitted_on
    assert fit.curve.residual == round(fit.residual, 2), "a field, so that the sentence can change"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("slope", "card"), [(2.5, HIGHER), (-2.5, LOWER)])
def test_a_curve_is_monotone_however_noisy_the_data(seed, slope, card):
    fit = fit_curve(related(slope, noise=0.8, n=100, seed=seed), card)
    assert fit.curve.is_monotone()
    better, worse = card.raw_range if not card.higher_is_better else reversed(card.raw_range)
    assert fit.curve(better) > fit.curve(worse)


@pytest.mark.parametrize(("slope", "card", "best"), [(3.0, HIGHER, 1.0), (-3.0, LOWER, 0.0)])
def test_undistorted_is_5_and_the_worst_at_most_2_even_if_the_scores_differ(slope, card, best):
    kind = related(slope * 0.5, perfect=best, worst=(abs(best - 0.7), abs(best - 0.9)))
    assert kind.quality.max() < 4.2
    assert kind.quality.min() > 1.8
    curve = fit_curve(kind, card).curve
    assert curve(best) == pytest.approx(5, abs=1e-4)
    assert all(curve(value) <= 2.15 for value in kind.worst)
    assert curve.is_monotone()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (related(n=19), "at least 20 labeled images that the tool can measure, got 19"),
        (points([0.5] * 30, np.linspace(1, 5, 30)), "returns 0.5 for every image"),
        (points(np.linspace(0, 1, 30), [3.0] * 30), "all MOS are equal"),
        (
            related(slope=0.0, n=60, noise=0.5),
            r"does not correlate with the MOS .*interval -?0\.\d\d \[-0\.\d\d, 0\.\d\d\]",
        ),
        (
            related(slope=-3.0),
            r"higher values .* better quality, but the labels show the opposite .*-0\.9",
        ),
        (
            points(np.linspace(0, 1, 80), 5 - 16 * (np.linspace(0, 1, 80) - 0.6) ** 2 / 1.44),
            "reverses .*for the high values",
        ),
    ],
    ids=["few", "flat values", "flat scores", "unrelated", "opposite", "turning"],
)
def test_data_without_a_curve_give_a_one_line_reason(given, message):
    with pytest.raises(ToolError, match=message) as caught:
        fit_curve(given, HIGHER)
    assert "\n" not in str(caught.value)
