"""Properties of every statistic; those of a single one are in the test of its file."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, run_tool, toolbox
from agenticiqa.programs.tools.features.by_name import STATISTICS, all_statistics
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, scene
from support.images import coffee, loaded

TOOL_OF = {
    "BLUR-EXTENT": "blur_extent",
    "EDGE-SHARPNESS": "edge_sharpness",
    "NOISE-SIGMA": "noise_sigma",
    "BLOCKINESS": "blockiness",
    "COLORFULNESS": "colorfulness",
    "RMS-CONTRAST": "rms_contrast",
}


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


# Each measure follows the distortion that it is named for, over all levels.
@pytest.mark.parametrize(
    ("name", "distortion", "direction"),
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
def test_a_measure_is_monotone_in_its_distortion(photo, name, distortion, direction, made):
    source = scene() if made else photo
    values = [STATISTICS[name](AT_LEVEL[distortion](level, source)) for level in ALL_LEVELS]
    assert spearmanr(ALL_LEVELS, values).statistic == pytest.approx(direction), values


# No warning, no NaN, always a plain float: one pixel, rows, columns, sizes around every window, flat and busy.
@pytest.mark.parametrize(
    "size",
    [(1, 1), (1, 2), (2, 2), (3, 3), (3, 7), (8, 8), (17, 17), (18, 19), (33, 31), (1, 900), (2000, 2), (3, 700)],
)
@pytest.mark.parametrize("content", ["black", "white", "gray", "color", "noise"])
def test_every_measure_is_finite_for_any_image(size, content):
    image = np.zeros((*size, 3), np.uint8)
    if content == "noise":
        image = np.random.default_rng(0).integers(0, 256, image.shape, dtype=np.uint8)
    else:
        image[:] = {"black": 0, "white": 255, "gray": 119, "color": (200, 30, 90)}[content]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {name: STATISTICS[name](image) for name in STATISTICS}
    assert all(type(value) is float and np.isfinite(value) for value in values.values()), values


@pytest.mark.parametrize("wrong", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((0, 9, 3), np.uint8)])
def test_arrays_other_than_8_bit_rgb_are_refused(wrong):
    for name in STATISTICS:
        with pytest.raises(ToolError, match="expected"):
            STATISTICS[name](wrong)


def test_measure_holds_every_measure_and_is_read_only(photo):
    image = loaded(photo)
    values = all_statistics(image)
    assert all_statistics(image) is values, "measured once"
    call = run_tool(toolbox()["BLUR-EXTENT"], image, None, region="Global", distortion="Blurs")
    assert call.raw == values["blur_extent"]
    assert dict(values) == {name: STATISTICS[name](photo) for name in STATISTICS}
    with pytest.raises(TypeError):
        values["mean_luma"] = 0.0  # type: ignore[index]


@pytest.mark.parametrize("times", [1, 5], ids=["small", "larger than what is measured whole"])
def test_a_tool_and_its_measure_agree_at_every_size(times):
    image = np.tile(scene(300, 400), (times, times, 1))
    values = all_statistics(loaded(image))
    assert {tool: TOOLS[tool].measure(image) for tool in TOOL_OF} == {
        tool: values[name] for tool, name in TOOL_OF.items()
    }
    mean = values["mean_luma"]
    by_mean = max(80 - mean, 0) / 80 + max(mean - 160, 0) / 95
    assert TOOLS["EXPOSURE-ERROR"].measure(image) == max(by_mean, values["clipped_bright"])
