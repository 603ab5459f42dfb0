"""Properties of every full-reference metric; those of a single one are in the tests of its values."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.metrics.fr_fusion import fr_fusion
from agenticiqa.programs.tools.metrics.fsim import fsim
from agenticiqa.programs.tools.metrics.gmsd import gmsd
from agenticiqa.programs.tools.metrics.haarpsi import haarpsi
from agenticiqa.programs.tools.metrics.mdsi import mdsi
from agenticiqa.programs.tools.metrics.ms_ssim import ms_ssim
from agenticiqa.programs.tools.metrics.psnr import psnr
from agenticiqa.programs.tools.metrics.ssim import ssim
from agenticiqa.programs.tools.metrics.ssimulacra2 import ssimulacra2
from agenticiqa.programs.tools.metrics.vif import vif
from agenticiqa.programs.tools.tool import Tool
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, blur, noise, scene

pytestmark = pytest.mark.filterwarnings("error")


class Metric(NamedTuple):
    measure: Callable[[np.ndarray, np.ndarray], float]
    best: float
    sign: int  # 1: higher is better, -1: lower is better
    smallest: int
    symmetric: bool = True


METRICS = {
    "psnr": Metric(psnr, 100, 1, 1),
    "ssim": Metric(ssim, 1, 1, 11),
    "ms_ssim": Metric(ms_ssim, 1, 1, 176),
    "gmsd": Metric(gmsd, 0, -1, 8),
    "fsim": Metric(fsim, 1, 1, 8),
    "haarpsi": Metric(haarpsi, 1, 1, 8),
    "vif": Metric(vif, 1, 1, 65, symmetric=False),
    "mdsi": Metric(mdsi, 0, -1, 8, symmetric=False),
    "ssimulacra2": Metric(ssimulacra2, 100, 1, 8, symmetric=False),
    "fr_fusion": Metric(fr_fusion, 5, 1, 8, symmetric=False),
}
PHOTO = scene(176, 200)
PHOTO.flags.writeable = False

each_tool = pytest.mark.parametrize(
    "tool", [tool for tool in TOOLS.values() if tool.kind == "FR" and tool.map], ids=lambda tool: tool.name
)  # of those with a map
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def flat(level: int, height: int = 180, width: int = 190) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


@pytest.mark.slow
@each_metric
def test_the_value_is_a_float_best_for_equal_images_and_symmetric_where_stated(metric: Metric) -> None:
    there, back = metric.measure(blur(2, PHOTO), PHOTO), metric.measure(PHOTO, blur(2, PHOTO))
    assert type(there) is float
    assert there == metric.measure(blur(2, PHOTO), PHOTO.copy()), "the same bits"
    assert (there == pytest.approx(back, rel=1e-6)) == metric.symmetric
    gray = PHOTO[..., :1].repeat(3, axis=2)
    for image in (PHOTO, gray):
        assert metric.measure(image, image.copy()) == pytest.approx(metric.best, abs=1e-9)
        assert metric.sign * metric.measure(blur(3, image), image) < metric.sign * metric.measure(blur(1, image), image)


FALLING = ("blur", "noise", "jpeg", "low_contrast")


@pytest.mark.slow
@each_metric
@pytest.mark.parametrize("distortion", FALLING)
def test_quality_falls_with_every_step_of_a_distortion(metric: Metric, distortion: str) -> None:
    quality = [metric.sign * metric.measure(AT_LEVEL[distortion](level, PHOTO), PHOTO) for level in ALL_LEVELS]
    assert all(np.diff(quality) < 0), quality


@pytest.mark.slow
@each_metric
@pytest.mark.parametrize("distortion", sorted(set(AT_LEVEL) - {"brighten", *FALLING}))
def test_no_distorted_image_is_better_than_the_reference_itself(metric: Metric, distortion: str) -> None:
    value = metric.measure(AT_LEVEL[distortion](3, PHOTO), PHOTO)
    assert metric.sign * value <= metric.sign * metric.best + 1e-9


@each_metric
@pytest.mark.parametrize("pair", [(0, 0), (0, 255), (255, 0), (128, 128), (128, 129)])
def test_flat_images_get_a_finite_value(metric: Metric, pair: tuple[int, int]) -> None:
    value = metric.measure(flat(pair[0]), flat(pair[1]))
    assert np.isfinite(value)
    if pair[0] == pair[1]:
        assert value == pytest.approx(metric.best, abs=1e-9)


@each_metric
def test_flat_and_striped_images_can_be_compared_with_others(metric: Metric) -> None:
    detailed = scene(180, 190)
    stripes = np.tile(np.array([0, 0, 200, 200, 90], np.uint8), (180, 38))[..., None].repeat(3, axis=2)
    turned = np.ascontiguousarray(stripes.transpose(1, 0, 2)[:180, :180])
    assert metric.measure(stripes, stripes) == pytest.approx(metric.best, abs=1e-9)
    for pair in ((flat(128), detailed), (detailed, flat(128)), (turned, stripes[:, :180])):
        value = metric.measure(*pair)
        assert np.isfinite(value)
        assert metric.sign * value < metric.sign * metric.best - 1e-3


@each_metric
def test_images_down_to_the_stated_side_are_measured_and_smaller_ones_refused(metric: Metric) -> None:
    side = metric.smallest
    for shape in [(side, side), (side, side + 1), (side + 30, side)]:
        image = scene(*shape)
        assert metric.measure(image, image) == pytest.approx(metric.best, abs=1e-9)
        assert np.isfinite(metric.measure(noise(3, image), image))
    if side > 1:
        small = scene(side - 1, side + 40)
        with pytest.raises(ToolError, match=f"at least {side} pixels, got {side + 40} x {side - 1}"):
            metric.measure(small, small)


@pytest.mark.slow
@each_metric
@pytest.mark.parametrize("turned", [False, True])
def test_extreme_aspect_ratios_are_measured(metric: Metric, turned: bool) -> None:
    image = scene(1501, metric.smallest + 2) if turned else scene(metric.smallest + 2, 1501)
    slight, strong = (metric.sign * metric.measure(noise(level, image), image) for level in (1, 4))
    assert metric.sign * metric.best > slight > strong


@each_metric
@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (PHOTO.astype(np.float64), r"uint8 array .*got float64"),
        (PHOTO[..., 0], r"uint8 array .*got uint8 of shape \(176, 200\)"),
        (np.dstack([PHOTO, PHOTO[..., 0]]), r"uint8 array .*got uint8 of shape \(176, 200, 4\)"),
        (PHOTO.tolist(), r"uint8 array .*got list"),
        (PHOTO[:-1], r"same size, got 200 x 175 and 200 x 176"),
        (np.zeros((0, 20, 3), np.uint8), "got 20 x 0"),
    ],
    ids=["float", "one channel", "four channels", "list", "another size", "empty"],
)
def test_arguments_other_than_a_pair_of_rgb_images_are_refused_in_one_line(
    metric: Metric, image: object, expected: str
) -> None:
    with pytest.raises(ToolError, match=expected) as caught:
        metric.measure(image, PHOTO)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def corner(pixels: np.ndarray, changed: np.ndarray, top: bool, left: bool) -> np.ndarray:
    """Return the image with one quarter of a changed image."""
    rows = slice(None, pixels.shape[0] // 2) if top else slice(pixels.shape[0] // 2, None)
    columns = slice(None, pixels.shape[1] // 2) if left else slice(pixels.shape[1] // 2, None)
    result = pixels.copy()
    result[rows, columns] = changed[rows, columns]
    return result


@pytest.mark.slow
@each_tool
@pytest.mark.parametrize("shape", [(192, 256), (261, 267)])
def test_the_damage_map_is_the_image_or_a_whole_fraction_of_it(tool: Tool, shape: tuple[int, int]) -> None:
    image = scene(*shape)
    assert tool.map is not None
    assert not tool.map(image.copy(), image).any()
    damages = [tool.map(noise(level, image), image).mean() for level in (1, 3, 5)]
    assert damages[0] < damages[1] < damages[2]
    damage = tool.map(blur(2, image), image)
    factor = round(shape[0] / damage.shape[0])
    assert damage.shape == (-(-shape[0] // factor), -(-shape[1] // factor))
    assert damage.min() >= 0
    assert np.isfinite(damage).all()


@pytest.mark.slow
@each_tool
@pytest.mark.parametrize(
    ("distortion", "top", "left"),
    [("blur", True, True), ("noise", False, False), pytest.param("jpeg", True, False, marks=pytest.mark.slow)],
)
def test_damage_shows_where_it_was_done(tool: Tool, distortion: str, top: bool, left: bool) -> None:
    reference = scene(352, 400)
    image = corner(reference, AT_LEVEL[distortion](4, reference), top, left)
    assert tool.map is not None
    damage = tool.map(image, reference)
    middle = damage.shape[0] // 2, damage.shape[1] // 2
    quarter = damage[: middle[0]] if top else damage[middle[0] :]
    quarter = quarter[:, : middle[1]] if left else quarter[:, middle[1] :]
    assert quarter.sum() > 0.8 * damage.sum()


@each_tool
def test_the_border_of_evenly_damaged_texture_is_about_as_bad_as_its_inside(tool: Tool) -> None:
    grain = np.random.default_rng(3).normal(0, 25, (256, 320, 1)) + 128
    reference = np.clip(np.repeat(gaussian_filter(grain, (0.7, 0.7, 0)), 3, axis=2), 0, 255).astype(np.uint8)
    assert tool.map is not None
    damage = tool.map(noise(4, reference), reference)
    rim = round(8 * damage.shape[0] / 256)
    inside = damage[3 * rim : -3 * rim, 3 * rim : -3 * rim].mean()
    for strip in (damage[:rim], damage[-rim:], damage[:, :rim], damage[:, -rim:]):
        assert 0.7 < strip.mean() / inside < 1.3


@pytest.mark.slow
@each_tool
@pytest.mark.parametrize(
    "shape", [pytest.param((8, 4000), marks=pytest.mark.slow), (4000, 8), (8, 8), (11, 300), (70, 1500)]
)
def test_any_shape_gets_finite_values_and_a_finite_map_or_is_refused_in_one_line(
    tool: Tool, shape: tuple[int, int]
) -> None:
    reference = scene(*shape)
    image = noise(3, reference)
    assert tool.map is not None
    if min(shape) < tool.smallest:
        for run in (tool.measure, tool.map):
            with pytest.raises(ToolError, match=rf"at least {tool.smallest} pixels, got") as caught:
                run(image, reference)
            assert "\n" not in str(caught.value)
    else:
        assert np.isfinite(tool.measure(image, reference))
        assert np.isfinite(tool.map(image, reference)).all()
