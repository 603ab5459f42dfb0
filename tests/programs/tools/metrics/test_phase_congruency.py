"""Phase congruency of edges, noise and flat planes."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.fsim import phase_congruency
from agenticiqa.programs.tools.numerics.pixels import luma
from support.distortion_levels import scene

PHOTO = scene()


def test_phase_congruency_lies_between_0_and_1_and_peaks_at_an_edge() -> None:
    plane = 5 * np.random.default_rng(0).standard_normal((64, 64))
    plane[:, 32:] += 100
    (congruency,) = phase_congruency([plane])
    assert congruency.min() >= 0
    assert congruency.max() <= 1
    across = congruency.mean(axis=0)
    assert across[8:56].argmax() + 8 in (31, 32)
    assert across[31:33].min() > 3 * across[21:27].max()


def test_phase_congruency_does_not_depend_on_contrast() -> None:
    weak, strong = phase_congruency([luma(PHOTO), 7 * luma(PHOTO) + 30])
    assert np.abs(weak - strong).max() < 0.01


def test_phase_congruency_of_noise_is_low() -> None:
    plane = 20 * np.random.default_rng(0).standard_normal((128, 128))
    (noisy,) = phase_congruency([plane])
    (structured,) = phase_congruency([luma(scene(128, 128))])
    assert noisy.mean() < 0.1
    assert structured.max() > 2 * noisy.mean()


@pytest.mark.parametrize("shape", [(2, 2), (2, 9), (9, 9), (31, 64)])
def test_phase_congruency_of_a_flat_plane_is_zero(shape: tuple[int, int]) -> None:
    (congruency,) = phase_congruency([np.full(shape, 80.0)])
    np.testing.assert_allclose(congruency, 0, atol=1e-6)
