"""Swapped red and blue of the reference are recognized and scored as damage; distortions are not mistaken for them."""

import numpy as np
import pytest
import skimage.data

from agenticiqa import AgenticIQA
from agenticiqa.configs.options import ImageSettings
from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.images.recolored import SWAPPED, recoloring
from support.images import loaded

COFFEE = np.ascontiguousarray(skimage.data.coffee()[:240, 120:440])
CAT = np.ascontiguousarray(skimage.data.chelsea()[:240, 60:380])


def bgr(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels[..., ::-1])


@pytest.mark.parametrize("kind", [None, "jpeg", "gaussian_blur", "white_noise", "darken"])
@pytest.mark.parametrize("pixels", [COFFEE, CAT], ids=["coffee", "cat"])
def test_swapped_red_and_blue_are_recognized(kind: str | None, pixels: np.ndarray) -> None:
    swapped = bgr(pixels)
    assert recoloring(distort(swapped, kind, 3) if kind else swapped, pixels) == SWAPPED


@pytest.mark.parametrize("kind", KINDS)
def test_distortions_do_not_count_as_swapped(kind: str) -> None:
    for pixels in (COFFEE, CAT):
        assert recoloring(distort(pixels, kind, 4), pixels) == ""


def test_a_gray_picture_has_nothing_to_swap() -> None:
    gray = np.repeat(COFFEE[..., :1], 3, axis=2)
    assert recoloring(bgr(gray), gray) == ""
    assert recoloring(np.full_like(gray, 9), gray) == ""


def test_swapped_channels_are_found_in_shifted_images_and_parts() -> None:
    swapped = bgr(COFFEE)
    shifted = load_checked(swapped[:-8, 12:], COFFEE[8:, :-12]).check
    assert (shifted.relation, shifted.colors) == ("shifted", SWAPPED)
    part = load_checked(swapped[20:200, 30:290], COFFEE, ImageSettings(align=True)).check
    assert (part.relation, part.colors, part.box) == ("part", SWAPPED, (30, 20, 290, 200))
    assert part.sentence.startswith(f"Compared with the reference, {SWAPPED}; ")


def test_swapped_channels_get_a_low_score() -> None:
    program, image, reference = AgenticIQA.from_config(), loaded(bgr(COFFEE)), loaded(COFFEE)
    result = program(image, reference=reference)
    assert result.reference_check is not None
    assert result.reference_check.colors == SWAPPED
    assert result.quality_score < 2.5
    assert SWAPPED in result.quality_reasoning
    explained = program(image, "What is wrong with this photo?", reference=reference)
    assert SWAPPED in explained.quality_reasoning
