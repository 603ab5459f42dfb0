"""The single-distortion measures: what each says of images made to have a known amount of what it measures."""

import gc
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import skimage.data
import skimage.measure
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, run_tool, toolbox
from agenticiqa.programs.tools.statistics.measures import SPATIAL, TONAL, WHOLE_PIXELS, measure, take
from support.images import loaded
from support.ladders import LADDERS, LEVELS, scene

MEASURES = [*SPATIAL, *TONAL]
MEASURED_BY = {
    "BLUR-EXTENT": "blur_extent",
    "EDGE-SHARPNESS": "edge_sharpness",
    "NOISE-SIGMA": "noise_sigma",
    "BLOCKINESS": "blockiness",
    "COLORFULNESS": "colorfulness",
    "RMS-CONTRAST": "rms_contrast",
}


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return np.ascontiguousarray(skimage.data.coffee()[:240, 120:440])


def grey(plane: np.ndarray) -> np.ndarray:
    return np.repeat(np.clip(np.rint(plane), 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def sharpened(rgb: np.ndarray, amount: float) -> np.ndarray:
    values = rgb.astype(float)
    return np.clip(values + amount * (values - gaussian_filter(values, (1.5, 1.5, 0))), 0, 255).astype(np.uint8)


# Each measure follows the distortion that it is named for, over all steps of the ladder.
@pytest.mark.parametrize(
    ("name", "ladder", "direction"),
    [
        ("blur_extent", "blur", 1),
        ("edge_sharpness", "blur", -1),
        ("noise_sigma", "noise", 1),
        ("blockiness", "jpeg", 1),
        ("mean_luma", "darken", -1),
        ("highlight_level", "darken", -1),
        ("shadow_level", "brighten", 1),
        ("rms_contrast", "low_contrast", -1),
        ("tonal_range", "low_contrast", -1),
        ("colorfulness", "desaturate", -1),
    ],
)
@pytest.mark.parametrize("made", [False, True])
def test_a_measure_is_monotone_in_its_distortion(photo, name, ladder, direction, made):
    source = scene() if made else photo
    values = [take(name, LADDERS[ladder](level, source)) for level in LEVELS]
    assert spearmanr(LEVELS, values).statistic == pytest.approx(direction), values


# No warning, no NaN, always a plain float: one pixel, rows, columns, sizes around every window, flat and busy.
@pytest.mark.parametrize(
    "size",
    [(1, 1), (1, 2), (2, 2), (3, 3), (3, 7), (8, 8), (17, 17), (18, 19), (33, 31), (1, 900), (2000, 2), (3, 700)],
)
@pytest.mark.parametrize("content", ["black", "white", "grey", "colour", "noise"])
def test_every_measure_is_finite_for_any_image(size, content):
    image = np.zeros((*size, 3), np.uint8)
    if content == "noise":
        image = np.random.default_rng(0).integers(0, 256, image.shape, dtype=np.uint8)
    else:
        image[:] = {"black": 0, "white": 255, "grey": 119, "colour": (200, 30, 90)}[content]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {name: take(name, image) for name in MEASURES}
    assert all(type(value) is float and np.isfinite(value) for value in values.values()), values


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("wrong", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((0, 9, 3), np.uint8)])
def test_what_is_no_8_bit_rgb_image_is_refused(name, wrong):
    with pytest.raises(ToolError, match="expected"):
        take(name, wrong)


# The blur effect is the one of scikit-image; its luma has other weights, which shifts colour images a little.
@pytest.mark.parametrize("level", [0, 2, 4])
def test_blur_extent_agrees_with_scikit_image(photo, level):
    blurred = LADDERS["blur"](level, photo)
    assert take("blur_extent", blurred) == pytest.approx(skimage.measure.blur_effect(blurred, channel_axis=2), abs=0.01)
    plane = blurred[..., 1]
    assert take("blur_extent", grey(plane)) == pytest.approx(skimage.measure.blur_effect(plane), abs=1e-6)


@pytest.mark.parametrize("sigma", [3, 8, 20])
def test_noise_sigma_is_the_standard_deviation_of_noise_on_a_ramp(sigma):
    ramp = np.linspace(60, 190, 300)[None].repeat(240, axis=0)
    noisy = grey(ramp + sigma * np.random.default_rng(1).standard_normal(ramp.shape))
    assert take("noise_sigma", noisy) == pytest.approx(sigma, rel=0.15)


def test_texture_without_noise_hardly_reads_as_noise(photo):
    assert take("noise_sigma", photo) < 2.4
    assert take("noise_sigma", skimage.data.gravel()[..., None].repeat(3, axis=2)) < 4


def test_isolated_pixels_counts_sprinkled_impulses_and_not_gaussian_noise(photo):
    sprinkled = photo.copy()
    rng = np.random.default_rng(2)
    sprinkled[rng.random(photo.shape[:2]) < 0.01] = 255
    assert take("isolated_pixels", sprinkled) == pytest.approx(0.01, abs=0.004)
    assert take("isolated_pixels", LADDERS["noise"](3, photo)) < 0.003


def test_blockiness_is_one_without_a_grid_and_found_wherever_the_grid_starts(photo):
    assert take("blockiness", photo) == pytest.approx(1, abs=0.1)
    compressed = LADDERS["jpeg"](4, photo)
    assert take("blockiness", compressed) > 2.5
    assert take("blockiness", compressed[3:, 5:]) == pytest.approx(take("blockiness", compressed), rel=0.1)


def test_edge_sharpness_does_not_depend_on_contrast(photo):
    assert take("edge_sharpness", LADDERS["low_contrast"](3, photo)) == pytest.approx(
        take("edge_sharpness", photo), rel=0.05
    )


def test_sharpening_makes_edges_steep_and_leaves_halos():
    rows, columns = np.mgrid[:200, :200]
    disc = gaussian_filter(np.where(np.hypot(rows - 100, columns - 100) < 60, 160.0, 90.0), 1.2)
    plain, sharp = grey(disc), sharpened(grey(disc), 3)
    assert take("overshoot", plain) < 0.02
    assert take("overshoot", sharp) > 0.3
    assert take("edge_sharpness", sharp) > take("edge_sharpness", plain)


def test_colorfulness_is_hasler_and_suesstrunks_formula():
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, :32], halves[:, 32:] = (200, 100, 50), (100, 100, 100)
    # red minus green is 100 and 0, yellow minus blue 100 and 0: spread 50 and mean 50 in both.
    assert take("colorfulness", halves) == pytest.approx(np.hypot(50, 50) * 1.3)
    assert take("colorfulness", grey(np.full((64, 64), 90.0))) == 0


def test_clipping_is_the_share_of_black_and_of_white():
    image = np.full((64, 64, 3), 128, np.uint8)
    image[:16], image[32:] = 0, 255
    assert take("clipped_dark", image) == 0.25
    assert take("clipped_bright", image) == 0.5


def test_darkening_leaves_the_tonal_range_alone(photo):
    assert take("tonal_range", LADDERS["darken"](3, photo)) == pytest.approx(take("tonal_range", photo), abs=0.02)


def test_noise_hardly_touches_tone_and_colour(photo):
    noisy = LADDERS["noise"](3, photo)
    for name in ("mean_luma", "rms_contrast", "colorfulness", "tonal_range"):
        assert take(name, noisy) == pytest.approx(take(name, photo), rel=0.05), name


def test_color_cast_sees_the_tint_of_what_was_neutral():
    ramp = grey(np.linspace(30, 220, 160)[None].repeat(160, axis=0))
    assert take("color_cast", ramp) < 0.1
    casts = [take("color_cast", (ramp * np.array([1, 1 - k / 2, 1 - k])).astype(np.uint8)) for k in (0.1, 0.25, 0.4)]
    assert casts == sorted(casts)
    assert casts[0] > 5


def test_tints_are_signed_lab_coordinates():
    swatch = np.zeros((16, 16, 3), np.uint8)
    swatch[:] = (255, 0, 0)
    # CIELAB of sRGB red under D65: (53.24, 80.09, 67.20).
    assert take("red_tint", swatch) == pytest.approx(80.09, abs=0.05)
    assert take("yellow_tint", swatch) == pytest.approx(67.20, abs=0.05)


def test_measure_holds_every_measure_and_is_read_only(photo):
    values = measure(loaded(photo))
    assert dict(values) == {name: take(name, photo) for name in MEASURES}
    with pytest.raises(TypeError):
        values["mean_luma"] = 0.0  # type: ignore[index]


def test_measure_computes_once_per_loaded_image_also_under_threads(monkeypatch):
    calls = []
    blur_extent = SPATIAL["blur_extent"]
    monkeypatch.setitem(SPATIAL, "blur_extent", lambda parts: calls.append(1) or blur_extent(parts))
    image = loaded(scene(96, 96))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(measure, [image] * 32))
    assert len(calls) == 1
    assert all(result is results[0] for result in results)
    call = run_tool(TOOLS["BLUR-EXTENT"], image, None, region="Global", distortion="Blurs")
    assert call.error == "BLUR-EXTENT has no calibration to 1..5 in this profile"
    call = run_tool(toolbox()["BLUR-EXTENT"], image, None, region="Global", distortion="Blurs")
    assert call.raw == results[0]["blur_extent"]
    assert len(calls) == 1
    measure(loaded(scene(96, 96)))
    assert len(calls) == 2


def test_measure_does_not_keep_an_image_alive():
    image = loaded(scene(32, 32))
    measure(image)
    alive = weakref.ref(image)
    del image
    gc.collect()
    assert alive() is None


def test_a_measure_that_failed_is_taken_again_the_next_time(monkeypatch):
    image = loaded(scene(32, 32))
    with monkeypatch.context() as patch:
        patch.setitem(TONAL, "mean_luma", lambda tone: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            measure(image)
    assert measure(image)["mean_luma"] > 0


# Scaling 3000 x 2000 pixels down to two megapixels would show a third less noise.
def test_noise_and_blocking_of_a_large_image_are_those_of_its_own_pixels():
    rng = np.random.default_rng(3)
    large = grey(120 + 10 * rng.standard_normal((2000, 3000), dtype=np.float32))
    assert large.shape[0] * large.shape[1] > WHOLE_PIXELS
    values = measure(loaded(large))
    assert values["noise_sigma"] == pytest.approx(10, rel=0.15)
    assert values["mean_luma"] == pytest.approx(120, abs=1)
    tile = np.ascontiguousarray(LADDERS["jpeg"](4, scene(256, 256)))
    assert measure(loaded(np.tile(tile, (7, 8, 1))))["blockiness"] == pytest.approx(take("blockiness", tile), rel=0.15)


@pytest.mark.parametrize("size", [(1, 2_100_000), (4, 600_000)])
def test_an_extremely_long_image_is_measured_too(size):
    values = measure(loaded(np.full((*size, 3), 80, np.uint8)))
    assert values["mean_luma"] == pytest.approx(80)
    assert all(np.isfinite(value) for value in values.values())


@pytest.mark.parametrize("size", [(300, 400), (1500, 2000)])
def test_a_tool_and_the_measure_that_it_is_made_of_give_one_number_whatever_the_size(size):
    image = scene(*size)
    values = measure(loaded(image))
    assert {tool: TOOLS[tool].measure(image) for tool in MEASURED_BY} == {
        tool: values[name] for tool, name in MEASURED_BY.items()
    }
    mean = values["mean_luma"]
    assert TOOLS["EXPOSURE-ERROR"].measure(image) == max(80 - mean, 0) / 80 + max(mean - 160, 0) / 95


# Averaged part by part, the flat ones would count as having the bluntest of edges.
def test_flat_parts_of_a_large_image_do_not_change_how_sharp_its_edges_are():
    textured = np.tile(scene(200, 250), (5, 8, 1))
    with_sky = np.vstack([textured, np.full_like(textured, 200)])
    assert take("edge_sharpness", with_sky) == pytest.approx(take("edge_sharpness", textured), rel=0.15)
    assert take("blur_extent", with_sky) == pytest.approx(take("blur_extent", textured), rel=0.15)


def test_tone_is_that_of_all_pixels_of_a_large_image():
    image = np.zeros((1800, 2407, 3), np.uint8)
    image[:, ::7] = 200
    assert take("mean_luma", image) == pytest.approx(image[..., 0].mean(), abs=1e-9)
