"""Mixed-up colors of the reference are recognized and scored as damage; distortions are not mistaken for them."""

from collections.abc import Callable

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageOps

from agenticiqa import AgenticIQA
from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.images.recolored import recoloring
from support.images import loaded

COFFEE = np.ascontiguousarray(skimage.data.coffee()[:240, 120:440])
CAT = np.ascontiguousarray(skimage.data.chelsea()[:240, 60:380])


def channels(*order: int, inverted: tuple[int, ...] = ()) -> Callable[[np.ndarray], np.ndarray]:
    flip = [c in inverted for c in range(3)]
    return lambda pixels: np.ascontiguousarray(np.where(flip, 255 - pixels[..., order], pixels[..., order]))


def luma_and_chroma(order: tuple[int, ...], *, inverted: tuple[int, ...] = ()) -> Callable[[np.ndarray], np.ndarray]:
    def changed(pixels: np.ndarray) -> np.ndarray:
        ycc = channels(*order, inverted=inverted)(np.asarray(Image.fromarray(pixels).convert("YCbCr")))
        return np.asarray(Image.fromarray(ycc, "YCbCr").convert("RGB"))

    return changed


MIXED_UP = {
    "all colors are inverted (a negative)": channels(0, 1, 2, inverted=(0, 1, 2)),
    "red and blue are swapped (BGR for RGB)": channels(2, 1, 0),
    "green and blue are swapped": channels(0, 2, 1),
    "red and green are swapped": channels(1, 0, 2),
    "the channels are in the order green, blue, red": channels(1, 2, 0),
    "the channels are in the order blue, red, green": channels(2, 0, 1),
    "red is inverted": channels(0, 1, 2, inverted=(0,)),
    "green is inverted": channels(0, 1, 2, inverted=(1,)),
    "blue is inverted": channels(0, 1, 2, inverted=(2,)),
    "red is inverted and blue is inverted": channels(0, 1, 2, inverted=(0, 2)),
    "Cb and Cr are swapped": luma_and_chroma((0, 2, 1)),
    "brightness is inverted": luma_and_chroma((0, 1, 2), inverted=(0,)),
    "levels above 128 are inverted (solarized)": lambda pixels: np.where(pixels >= 128, 255 - pixels, pixels),
    "each hue is replaced by its opposite": luma_and_chroma((0, 1, 2), inverted=(1, 2)),
}


@pytest.mark.parametrize("words", MIXED_UP)
@pytest.mark.parametrize("pixels", [COFFEE, CAT], ids=["coffee", "cat"])
def test_mixed_up_colors_are_described(words: str, pixels: np.ndarray) -> None:
    mixed = MIXED_UP[words](pixels)
    assert recoloring(mixed, pixels) == words
    for kind in ("jpeg", "gaussian_blur", "white_noise", "darken"):
        assert recoloring(distort(mixed, kind, 3), pixels) == words, kind


@pytest.mark.parametrize("level", [128, 192])
def test_a_solarized_copy_still_counts_as_the_same_picture(level: int) -> None:
    """Return the picture solarized, as by ``PIL.ImageOps.solarize``."""
    copy = np.asarray(ImageOps.solarize(Image.fromarray(CAT), level))
    check = load_checked(copy, CAT).check
    assert (check.relation, check.colors) == ("in place", f"levels above {level} are inverted (solarized)")


@pytest.mark.parametrize("kind", KINDS)
def test_distortions_do_not_count_as_mixed_up_colors(kind: str) -> None:
    for pixels in (COFFEE, CAT):
        assert recoloring(distort(pixels, kind, 4), pixels) == ""


def test_only_the_negative_of_a_gray_picture_is_recognized() -> None:
    gray = np.repeat(COFFEE[..., :1], 3, axis=2)
    assert recoloring(MIXED_UP["red and blue are swapped (BGR for RGB)"](gray), gray) == ""
    assert recoloring(255 - gray, gray) == "all colors are inverted (a negative)"
    assert recoloring(np.full_like(gray, 9), gray) == ""


@pytest.mark.parametrize("words", ["all colors are inverted (a negative)", "green is inverted"])
def test_mixed_up_colors_are_found_in_shifted_images_and_parts(words: str) -> None:
    mixed = MIXED_UP[words](COFFEE)
    shifted = load_checked(mixed[:-8, 12:], COFFEE[8:, :-12]).check
    assert (shifted.relation, shifted.colors) == ("shifted", words)
    part = load_checked(mixed[20:200, 30:290], COFFEE, align=True).check
    assert (part.relation, part.colors, part.box) == ("part", words, (30, 20, 290, 200))
    assert part.sentence.startswith(f"Compared with the reference, {words}; ")


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("all colors are inverted (a negative)", 1.3),
        ("brightness is inverted", 1.3),
        ("green is inverted", 1.5),
        ("blue is inverted", 2.0),
        ("red and blue are swapped (BGR for RGB)", 2.5),
        ("Cb and Cr are swapped", 2.5),
    ],
)
def test_images_with_mixed_up_colors_get_low_scores(words: str, most: float) -> None:
    program, image, reference = AgenticIQA.from_config(), loaded(MIXED_UP[words](COFFEE)), loaded(COFFEE)
    result = program(image, reference=reference)
    assert result.reference_check is not None
    assert result.reference_check.colors == words
    assert result.quality_score < most
    assert words in result.quality_reasoning
    explained = program(image, "What is wrong with this photo?", reference=reference)
    assert words in explained.quality_reasoning
