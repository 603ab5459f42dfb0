"""Tone and color of synthetic images with known values."""

import io

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageOps

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.tools.features.by_name import STATISTICS
from agenticiqa.programs.tools.statistics.tonal import monochrome_of
from support.distortion_levels import AT_LEVEL
from support.images import as_gray, coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_clipping_is_the_share_of_black_and_of_white():
    image = np.full((64, 64, 3), 128, np.uint8)
    image[:16], image[32:] = 0, 255
    assert STATISTICS["clipped_dark"](image) == 0.25
    assert STATISTICS["clipped_bright"](image) == 0.5


def test_darkening_leaves_the_tonal_range_alone(photo):
    assert STATISTICS["tonal_range"](AT_LEVEL["darken"](3, photo)) == pytest.approx(
        STATISTICS["tonal_range"](photo), abs=0.02
    )


def test_noise_hardly_touches_tone_and_color(photo):
    noisy = AT_LEVEL["noise"](3, photo)
    for name in ("mean_luma", "rms_contrast", "colorfulness", "tonal_range"):
        assert STATISTICS[name](noisy) == pytest.approx(STATISTICS[name](photo), rel=0.05), name


def test_color_cast_is_the_tint_of_neutral_areas():
    ramp = as_gray(np.linspace(30, 220, 160)[None].repeat(160, axis=0))
    assert STATISTICS["color_cast"](ramp) < 0.1
    casts = [
        STATISTICS["color_cast"]((ramp * np.array([1, 1 - k / 2, 1 - k])).astype(np.uint8)) for k in (0.1, 0.25, 0.4)
    ]
    assert casts == sorted(casts)
    assert casts[0] > 5


@pytest.mark.parametrize("level", [0, 255])
def test_black_and_white_have_no_cast(level):
    assert STATISTICS["color_cast"](np.full((16, 16, 3), level, np.uint8)) == 0


def test_tints_are_signed_lab_coordinates():
    swatch = np.zeros((16, 16, 3), np.uint8)
    swatch[:] = (255, 0, 0)
    # CIELAB of sRGB red under D65: (53.24, 80.09, 67.20).
    assert STATISTICS["red_tint"](swatch) == pytest.approx(80.09, abs=0.05)
    assert STATISTICS["yellow_tint"](swatch) == pytest.approx(67.20, abs=0.05)


PHOTOS = {name: getattr(skimage.data, name)() for name in ("astronaut", "chelsea", "coffee", "rocket")}


def in_gray(rgb: np.ndarray) -> Image.Image:
    return Image.fromarray(rgb).convert("L")


def as_jpeg(image: Image.Image) -> np.ndarray:
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=60)
    return np.asarray(Image.open(file))


@pytest.mark.parametrize("name", PHOTOS)
def test_a_photo_is_not_monochrome_even_with_changed_colors(name):
    rgb = PHOTOS[name]
    for kind, level in (("desaturate", 2), ("desaturate", 3), ("oversaturate", 3), ("color_cast", 3), ("darken", 4)):
        assert monochrome_of(distort(rgb, kind, level)) is None
    assert monochrome_of(rgb) is None


@pytest.mark.parametrize("name", PHOTOS)
def test_gray_images_are_recognized_also_compressed_scanned_or_dark(name):
    gray = in_gray(PHOTOS[name])
    scan = np.asarray(gray.convert("RGB")) + np.random.default_rng(3).normal(0, 4, (gray.height, gray.width, 3))
    assert monochrome_of(np.asarray(gray.convert("RGB"))) == "gray"
    assert monochrome_of(as_jpeg(gray)) == "gray"
    assert monochrome_of(np.clip(scan, 0, 255).astype(np.uint8)) == "gray"
    assert monochrome_of(np.asarray(gray.convert("RGB")) // 8) == "gray"


@pytest.mark.parametrize("name", PHOTOS)
def test_sepia_is_toned_and_one_cold_hue_is_not(name):
    gray = in_gray(PHOTOS[name])
    sepia = ImageOps.colorize(gray, "#1a0f00", "#fff3d6", "#a07850")
    assert monochrome_of(np.asarray(sepia)) == "toned"
    assert monochrome_of(as_jpeg(sepia)) == "toned"
    assert monochrome_of(np.asarray(ImageOps.colorize(gray, "#001040", "#d0f0ff"))) is None


@pytest.mark.parametrize("size", [(2, 600), (24, 24), (40, 12)])
def test_small_images_are_classified_by_their_colors(size):
    assert monochrome_of(np.full((*size, 3), 90, np.uint8)) == "gray"
    colored = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert monochrome_of(colored // 2 + np.array([120, 40, 0], np.uint8)) != "gray"
