"""NOISE-SIGMA on noise of a known deviation, and on texture without noise."""

import numpy as np
import pytest
import skimage.data
import skimage.measure

from agenticiqa.programs.tools.metrics.noise_sigma import noise_sigma
from support.images import as_gray, coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


@pytest.mark.parametrize("sigma", [3, 8, 20])
def test_noise_sigma_is_the_standard_deviation_of_noise_on_a_ramp(sigma):
    ramp = np.linspace(60, 190, 300)[None].repeat(240, axis=0)
    noisy = as_gray(ramp + sigma * np.random.default_rng(1).standard_normal(ramp.shape))
    assert noise_sigma(noisy) == pytest.approx(sigma, rel=0.15)


def test_texture_without_noise_hardly_reads_as_noise(photo):
    assert noise_sigma(photo) < 2.4
    assert noise_sigma(skimage.data.gravel()[..., None].repeat(3, axis=2)) < 4
