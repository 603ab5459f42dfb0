"""The fits recover what samples were drawn from."""

import numpy as np
import pytest

from agenticiqa.programs.tools.statistics.aggd import fit_aggd, moments


@pytest.mark.parametrize(("shape", "draw"), [(2.0, "standard_normal"), (1.0, "laplace")])
def test_the_fit_recovers_the_shape_and_both_deviations(shape: float, draw: str) -> None:
    values = getattr(np.random.default_rng(5), draw)(size=(1000, 1000))
    values /= values.std()
    skewed = np.where(values < 0, 2 * values, 3 * values)
    # In this distribution the sides weigh in proportion to their deviations: keep 2 of 3 on the left.
    kept = skewed[(values >= 0) | (np.random.default_rng(6).random(values.shape) < 2 / 3)]
    fit = fit_aggd(moments(kept[None]), kept.size)
    assert fit.shape == pytest.approx(shape, rel=0.02)
    assert fit.left == pytest.approx(2, rel=0.01)
    assert fit.right == pytest.approx(3, rel=0.01)
    assert fit.mean == pytest.approx(kept.mean(), rel=0.01)


def test_the_fit_of_values_on_one_side_and_of_none_at_all() -> None:
    fit = fit_aggd(moments(np.stack([np.ones(50), -np.ones(50), np.zeros(50)])), 50)
    assert fit.left.tolist() == [0, 1, 0]
    assert fit.right.tolist() == [1, 0, 0]
    assert np.isnan(fit.shape).tolist() == [False, False, True]
