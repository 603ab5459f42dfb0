"""The normalized coefficients: those of the whole plane, whatever the band."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.tools.statistics.mscn import coefficients, full_scale, half_scale


def test_flat_regions_of_an_image_have_coefficients_of_exactly_zero() -> None:
    plane = np.full((64, 64), 77, np.uint8)
    plane[:, 40:] = 201
    found = coefficients(full_scale(plane), 0, 64, "edge")
    assert not found[:, :36].any()
    assert not found[:, 44:].any()
    assert found[:, 39].all()


@pytest.mark.parametrize("make", [full_scale, half_scale])
@pytest.mark.parametrize("border", ["edge", "constant"])
def test_a_band_of_coefficients_is_that_of_the_whole_plane_and_follows_the_definition(make, border) -> None:
    levels = np.random.default_rng(4).integers(0, 256, (83, 70), dtype=np.uint8)
    scale = make(levels)
    whole = coefficients(scale, 0, scale.height, border)
    assert np.array_equal(coefficients(scale, 5, 17, border), whole[5:17])
    plane = scale.rows(0, scale.height).astype(float)

    def local_mean(values: np.ndarray) -> np.ndarray:
        return gaussian_filter(values, 7 / 6, radius=3, mode="nearest" if border == "edge" else "constant")

    deviation = np.sqrt(local_mean(plane**2) - local_mean(plane) ** 2)
    assert whole == pytest.approx((plane - local_mean(plane)) / (deviation + 1), abs=1e-9)


@pytest.mark.parametrize(("height", "width"), [(64, 96), (63, 97)])
def test_halving_keeps_a_ramp_a_ramp(height: int, width: int) -> None:
    y, x = np.mgrid[:height, :width]
    scale = half_scale((y + x).astype(np.uint8))
    half = scale.rows(0, scale.height)
    assert half.shape == (scale.height, scale.width) == ((height + 1) // 2, (width + 1) // 2)
    rows, columns = np.mgrid[: half.shape[0], : half.shape[1]]
    # Output i lies midway between inputs 2i and 2i + 1; the mirrored border bends the ramp.
    expected = 2 * rows + 2 * columns + 1
    assert half[3:-3, 3:-3] == pytest.approx(expected[3:-3, 3:-3], abs=1e-9)


def test_halving_is_the_bicubic_resize_of_pillow() -> None:
    levels = np.random.default_rng(5).integers(0, 256, (80, 60), dtype=np.uint8)
    resized = Image.fromarray(levels.astype(np.float32)).resize((30, 40), Image.Resampling.BICUBIC)
    scale = half_scale(levels)
    inside = (slice(3, -3), slice(3, -3))  # the borders are continued otherwise
    assert scale.rows(0, scale.height)[inside] == pytest.approx(np.asarray(resized)[inside], abs=1e-3)
