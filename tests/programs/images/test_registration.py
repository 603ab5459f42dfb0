"""A reference is found in place, shifted, cropped or scaled, or is recognized as another picture."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.configs.options import ImageSettings
from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load, registration
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.images.reference_check import ReferenceCheck

pytestmark = pytest.mark.slow

COFFEE = np.ascontiguousarray(skimage.data.coffee())
CAT = np.ascontiguousarray(skimage.data.chelsea())
ASTRONAUT = np.ascontiguousarray(skimage.data.astronaut())
ROCKET = np.ascontiguousarray(skimage.data.rocket())
PHOTOS = [COFFEE, CAT, ASTRONAUT, ROCKET]
ALIGNED = ImageSettings(align=True)


def check_of(image: np.ndarray, reference: np.ndarray) -> ReferenceCheck:
    check = load_checked(image, reference).check
    assert check is not None
    return check


def resized(pixels: np.ndarray, width: int, height: int, box: tuple[float, ...] | None = None) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS, box=box))


def shifted(pixels: np.ndarray, right: int, down: int, margin: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return an image with its content shifted right and down against the reference, and the reference."""
    height, width = pixels.shape[:2]
    reference = pixels[margin : height - margin, margin : width - margin]
    image = pixels[margin - down : height - margin - down, margin - right : width - margin - right]
    return np.ascontiguousarray(image), np.ascontiguousarray(reference)


@pytest.mark.parametrize(("right", "down"), [(3, 2), (-3, 0), (0, -1), (1, 1), (-17, 29), (40, 40)])
@pytest.mark.parametrize("pixels", [COFFEE, CAT])
def test_a_whole_shift_is_found(pixels: np.ndarray, right: int, down: int) -> None:
    image, reference = shifted(pixels, right, down)
    check = check_of(image, reference)
    assert (check.relation, check.shift) == ("shifted", pytest.approx((right, down), abs=0.15))
    assert check.confidence > 0.6


def test_a_fraction_of_a_pixel_is_found() -> None:
    reference = resized(COFFEE, 300, 200, (0, 0, 594, 396))
    image = resized(COFFEE, 300, 200, (3, 0, 597, 396))  # 1.52 pixels to the left
    check = check_of(image, reference)
    assert check.shift == pytest.approx((-3 / 1.98, 0), abs=0.1)
    assert "1.5 px left" in check.sentence


@pytest.mark.parametrize("kind", ["jpeg", "white_noise", "gaussian_blur", "darken", "oversharpen"])
def test_a_shift_is_found_below_a_distortion(kind: str) -> None:
    image, reference = shifted(COFFEE, 5, -3)
    check = check_of(distort(image, kind, 3), reference)
    assert (check.relation, check.shift) == ("shifted", pytest.approx((5, -3), abs=0.5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pixels", PHOTOS[:2])
def test_no_distortion_is_a_shift_or_another_picture(kind: str, pixels: np.ndarray) -> None:
    check = check_of(distort(pixels, kind, 5), pixels)
    assert (check.relation, check.sentence) == ("in place", "")


@pytest.mark.parametrize(
    ("image", "reference", "relation", "shown"),
    [
        (*shifted(COFFEE, 3, 2), "shifted", "shifted by 3 px right, 2 px down relative to its reference"),
        (*shifted(COFFEE, 0, -4), "shifted", "shifted by 4 px up relative to"),
        (CAT, CAT.copy(), "identical", ""),
        (CAT[..., ::-1].copy(), CAT, "in place", "red and blue are swapped (BGR for RGB); this lowers the score"),
        (ROCKET, np.ascontiguousarray(ROCKET[:, ::-1]), "another picture", "shows the image mirrored"),
        (CAT, np.full_like(CAT, 90), "unknown", ""),
        (CAT[:8, :8].copy(), CAT[40:48, :8].copy(), "unknown", ""),
        (CAT[:31, :31].copy(), CAT[40:71, :31].copy(), "unknown", ""),
    ],
)
def test_the_relation_is_described(image: np.ndarray, reference: np.ndarray, relation: str, shown: str) -> None:
    check = check_of(image, reference)
    assert check.relation == relation
    assert shown in check.sentence
    assert bool(check.sentence) == bool(shown)
    assert ("--align" in check.sentence) == (relation == "shifted")


@pytest.mark.parametrize("number", range(4))
def test_another_photo_is_recognized(number: int) -> None:
    image, other = PHOTOS[number], PHOTOS[number - 1]
    other = resized(other, image.shape[1], image.shape[0])
    check = check_of(image, other)
    assert check.relation == "another picture"
    assert "shows another picture" in check.sentence


def test_another_small_picture_does_not_match_by_chance() -> None:
    """For most of these pairs, there is a place with a structural correlation above one half."""
    small = []
    for seed in range(40):
        colors = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        small.append(np.asarray(Image.fromarray(colors).resize((64, 64))))
    shown = [check_of(a, b).relation for a, b in zip(small[::2], small[1::2], strict=True)]
    assert shown.count("another picture") >= 19


@pytest.mark.parametrize("pixels", PHOTOS)
@pytest.mark.parametrize("side", [48, 64, 96])
def test_a_shift_of_a_small_picture_is_found(pixels: np.ndarray, side: int) -> None:
    image, reference = shifted(resized(pixels, side + 16, side + 16), 5, -4, margin=8)
    check = check_of(distort(image, "jpeg", 2), reference)
    assert (check.relation, check.shift) == ("shifted", pytest.approx((5, -4), abs=0.5))


def crop_of(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(pixels[40:280, 56:400]), pixels


def half_size(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return resized(pixels, pixels.shape[1] // 2, pixels.shape[0] // 2), pixels


def zoomed_part(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return resized(pixels, 500, 320, (50, 40, 450, 296)), pixels


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (crop_of, r"the image shows only the part \[56, 40, 400, 280\] of its reference; set align \(--align\)"),
        (half_size, r"the reference shows the same scene at 2 times the size; set resize_reference .* or align"),
        (
            zoomed_part,
            r"the image shows only the part \[50, 40, 450, 296\] of its reference at 1.25 times its size; set align",
        ),
        (lambda pixels: crop_of(pixels)[::-1], r"the reference shows only the part \[56, 40, 400, 280\] of the image"),
        (lambda pixels: (pixels, resized(CAT, 300, 300)), r"the reference shows another picture: give the image's own"),
        (lambda pixels: (pixels, np.rot90(pixels).copy()), r"the reference shows the image rotated by 90 degrees"),
    ],
)
def test_a_reference_of_another_size_is_refused_with_the_relation_found(
    made: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], shown: str
) -> None:
    image, reference = made(COFFEE)
    with pytest.raises(ImageError, match=shown) as caught:
        load_checked(image, reference)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("<array>: expected a reference of the image's size")


def test_a_pair_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    search = registration._search
    monkeypatch.setattr(registration, "_search", lambda found: searched.append(found) or search(found))
    other = resized(COFFEE, CAT.shape[1], CAT.shape[0])
    assert check_of(CAT, other).relation == "another picture"
    for options in ({}, {"settings": ALIGNED}, {"resize_reference": True}):
        with suppress(ImageError):
            load_checked(*crop_of(COFFEE[..., ::-1]), **options)
    assert len(searched) == 4


@pytest.mark.parametrize(
    ("pair", "relation", "most"),
    [
        (shifted(COFFEE, 3, 2), "shifted", 0.0),
        (shifted(CAT, -8, 0), "shifted", 0.0),
        (crop_of(COFFEE), "part", 0.0),
        (crop_of(COFFEE)[::-1], "part", 0.0),
        (half_size(COFFEE), "scaled", 1.0),
        (zoomed_part(COFFEE), "part", 1.5),
        ((resized(COFFEE, 600, 400, (60, 40, 540, 360)), COFFEE), "part", 1.5),
    ],
)
def test_aligned_pairs_have_the_same_pixels(pair: tuple[np.ndarray, ...], relation: str, most: float) -> None:
    image, reference, check = load_checked(*pair, ALIGNED)
    assert (check.relation, check.aligned) == (relation, True)
    assert image.size == reference.size
    assert np.abs(image.pixels.astype(float) - reference.pixels).mean() <= most
    assert not image.pixels.flags.writeable
    assert load(reference.data).same_pixels(reference), "a model is sent what is measured"
    assert image.sha256 == load(pair[0]).sha256, "the hash stays that of the file"
    assert check.sentence in image.notes


def test_pairs_that_need_no_alignment_are_unchanged() -> None:
    worse = distort(CAT, "jpeg", 4)
    image, reference, check = load_checked(worse, CAT, ALIGNED)
    assert (check.relation, check.aligned, image.notes) == ("in place", False, ())
    assert np.array_equal(image.pixels, worse)
    assert np.array_equal(reference.pixels, CAT)
    with pytest.raises(ImageError, match="another picture"):
        load_checked(COFFEE, ASTRONAUT, ALIGNED)


def test_an_aligned_image_keeps_the_grid_of_its_blocks_and_is_sent_within_max_side() -> None:
    image, reference = shifted(COFFEE, 3, 2)
    pair = load_checked(image, reference, ImageSettings(align=True, max_side=100))
    assert np.array_equal(pair.image.pixels, image[8 : 8 + pair.image.height, 8 : 8 + pair.image.width])
    assert max(load(pair.image.data).size) == max(load(pair.reference.data).size) == 100
