"""GMSD against its definition and the official values."""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import convolve2d

from agenticiqa.programs.tools.metrics.gmsd import gmsd
from agenticiqa.programs.tools.numerics.pixels import gray_levels
from support.distortion_levels import noise, scene
from support.golden import golden_pairs

PHOTO = scene()


def test_gmsd_equals_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert gmsd(pair.image, pair.reference) == pytest.approx(pair.values["gmsd"], abs=1e-7), pair.name


@pytest.mark.parametrize("shape", [(40, 60), (41, 59)])
def test_gmsd_agrees_with_its_definition_written_out(shape: tuple[int, int]) -> None:
    reference = scene(*shape)
    prewitt = np.outer([1, 1, 1], [1, 0, -1]) / 3
    magnitudes = []
    for image in (noise(3, reference), reference):
        # MATLAB's "same" starts half a kernel later than SciPy's for kernels of even size.
        half = convolve2d(gray_levels(image).astype(float), np.full((2, 2), 0.25))[1:, 1:][::2, ::2]
        magnitudes.append(np.hypot(*(convolve2d(half, kernel, mode="same") for kernel in (prewitt, prewitt.T))))
    first, second = magnitudes
    expected = np.std((2 * first * second + 170) / (first**2 + second**2 + 170), ddof=1)
    assert gmsd(noise(3, reference), reference) == pytest.approx(expected, abs=1e-7)


def test_gmsd_does_not_see_color() -> None:
    as_gray = gray_levels(PHOTO)[..., None].repeat(3, axis=2)
    assert gmsd(as_gray, PHOTO) == 0
