"""Properties of the damage maps of the no-reference tools."""

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS
from support.distortion_levels import AT_LEVEL, scene

# The map of the learned model rates parts instead of finding damage: see test_learned_iqa.
MAPS = {name: tool.map for name, tool in TOOLS.items() if tool.kind == "NR" and tool.map and name != "LEARNED-IQA"}
SHARP = scene(384, 576, seed=7)
SMOOTH = AT_LEVEL["blur"](1, SHARP)


# What each map is to find, and in which image: the sharp one reads as a noisy one.
SHOWN_BY = {
    "NIQE": ("noise", SHARP),
    "PIQE": ("noise", SMOOTH),
    "BLUR-EXTENT": ("blur", SHARP),
    "NOISE-SIGMA": ("noise", SMOOTH),
    "BLOCKINESS": ("jpeg", SHARP),
    "EXPOSURE-ERROR": ("brighten", SHARP),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("bottom", "right"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_damage_in_one_quadrant_shows_there_and_not_elsewhere(name, bottom, right):
    distortion, image = SHOWN_BY[name]
    spoilt, is_spoilt = image.copy(), np.zeros((384, 576), bool)
    is_spoilt[192 * bottom : 192 * (bottom + 1), 288 * right : 288 * (right + 1)] = True
    spoilt[is_spoilt] = AT_LEVEL[distortion](5, image)[is_spoilt]
    before, after = MAPS[name](image), MAPS[name](spoilt)
    inside = is_spoilt[:: 384 // after.shape[0], :: 576 // after.shape[1]]
    assert after[inside].mean() > before[inside].mean()
    assert after[inside].mean() > 2 * after[~inside].mean()
    assert after[~inside].mean() == pytest.approx(before[~inside].mean(), abs=0.1 * after[inside].mean())


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("size", [(192, 192), (193, 250), (1, 1), (2, 300), (17, 9), (35, 131), (8, 1000), (400, 300)])
@pytest.mark.parametrize("content", ["black", "white", "noise", "scene"])
@pytest.mark.filterwarnings("error")
def test_a_map_is_finite_and_has_a_value_for_every_cell_that_the_image_reaches(name, size, content):
    image = {
        "black": np.zeros((*size, 3), np.uint8),
        "white": np.full((*size, 3), 255, np.uint8),
        "noise": np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8),
        "scene": scene(*size),
    }[content]
    if min(size) < TOOLS[name].smallest:
        with pytest.raises(ToolError, match=r"^.+$"):
            MAPS[name](image)
        return
    damage = MAPS[name](image)
    assert np.isfinite(damage).all()
    assert (damage >= 0).all()
    cell = -(-size[0] // damage.shape[0])
    assert any(damage.shape == tuple(-(-side // cell) for side in size) for cell in (8, 16, 32, 96)), cell


def test_only_the_exposure_map_of_a_blank_image_is_not_zero():
    white = np.full((200, 200, 3), 255, np.uint8)
    assert {name for name, damage in MAPS.items() if damage(white).any()} == {"EXPOSURE-ERROR"}
    assert MAPS["EXPOSURE-ERROR"](white).all()
    for each in MAPS.values():
        with pytest.raises(ToolError, match="expected"):
            each(np.zeros((300, 300)))
    # The map is put together of bands; nothing of that shows in it.
    grain = (120 + 10 * np.random.default_rng(3).standard_normal((700, 500, 1))).astype(np.uint8).repeat(3, axis=2)
    damage = MAPS["NOISE-SIGMA"](grain)
    assert damage.std() < 0.1 * damage.mean()
