"""The normalized coefficients of bands are those of the whole plane."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.tools.statistics.mscn import coefficients, fit_aggd, full_scale, half_scale, moments


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
