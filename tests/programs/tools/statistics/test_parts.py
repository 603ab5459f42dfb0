"""A large image is read in parts at its own resolution, and its tone from all of it."""

import numpy as np
import pytest

from agenticiqa.programs.tools.features.by_name import STATISTICS, all_statistics
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS
from support.distortion_levels import AT_LEVEL, scene
from support.images import as_gray, loaded


# Scaling 3000 x 2000 pixels down to two megapixels would show a third less noise.
@pytest.mark.slow
def test_noise_and_blocking_of_a_large_image_are_those_of_its_own_pixels():
    rng = np.random.default_rng(3)
    large = as_gray(120 + 10 * rng.standard_normal((2000, 3000), dtype=np.float32))
    assert large.shape[0] * large.shape[1] > WHOLE_PIXELS
    values = all_statistics(loaded(large))
    assert values["noise_sigma"] == pytest.approx(10, rel=0.15)
    assert values["mean_luma"] == pytest.approx(120, abs=1)
    tile = np.ascontiguousarray(AT_LEVEL["jpeg"](4, scene(256, 256)))
    assert all_statistics(loaded(np.tile(tile, (7, 8, 1))))["blockiness"] == pytest.approx(
        STATISTICS["blockiness"](tile), rel=0.15
    )


@pytest.mark.parametrize("size", [(3, 990_000), (4, 600_000)])
def test_an_extremely_long_image_is_measured_too(size):
    values = all_statistics(loaded(np.full((*size, 3), 80, np.uint8)))
    assert values["mean_luma"] == pytest.approx(80)
    assert all(np.isfinite(value) for value in values.values())


# Averaged part by part, the flat ones would count as having the bluntest of edges.
def test_flat_parts_of_a_large_image_do_not_change_how_sharp_its_edges_are():
    textured = np.tile(scene(200, 250), (5, 8, 1))
    with_sky = np.vstack([textured, np.full_like(textured, 200)])
    assert STATISTICS["edge_sharpness"](with_sky) == pytest.approx(STATISTICS["edge_sharpness"](textured), rel=0.15)
    assert STATISTICS["blur_extent"](with_sky) == pytest.approx(STATISTICS["blur_extent"](textured), rel=0.15)


def test_tone_is_that_of_all_pixels_of_a_large_image():
    image = np.zeros((1800, 2407, 3), np.uint8)
    image[:, ::7] = 200
    assert STATISTICS["mean_luma"](image) == pytest.approx(image[..., 0].mean(), abs=1e-9)
