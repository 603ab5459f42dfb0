"""Gray and toned images are told from images with colors, also from faded ones."""

import io

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageOps

from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.statistics.monochrome import monochrome

PHOTOS = {name: getattr(skimage.data, name)() for name in ("astronaut", "chelsea", "coffee", "rocket")}


def in_gray(rgb: np.ndarray) -> Image.Image:
    return Image.fromarray(rgb).convert("L")


def as_jpeg(image: Image.Image) -> np.ndarray:
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=60)
    return np.asarray(Image.open(file))


@pytest.mark.parametrize("name", PHOTOS)
def test_a_photo_has_colors_also_faded_and_gaudy_and_under_colored_light(name):
    rgb = PHOTOS[name]
    for kind, level in (("desaturate", 2), ("desaturate", 3), ("oversaturate", 3), ("color_cast", 3), ("darken", 4)):
        assert monochrome(distort(rgb, kind, level)) is None
    assert monochrome(rgb) is None


@pytest.mark.parametrize("name", PHOTOS)
def test_gray_is_gray_also_compressed_scanned_or_dark(name):
    gray = in_gray(PHOTOS[name])
    scan = np.asarray(gray.convert("RGB")) + np.random.default_rng(3).normal(0, 4, (gray.height, gray.width, 3))
    assert monochrome(np.asarray(gray.convert("RGB"))) == "gray"
    assert monochrome(as_jpeg(gray)) == "gray"
    assert monochrome(np.clip(scan, 0, 255).astype(np.uint8)) == "gray"
    assert monochrome(np.asarray(gray.convert("RGB")) // 8) == "gray"


@pytest.mark.parametrize("name", PHOTOS)
def test_sepia_is_toned_and_one_cold_hue_is_not(name):
    gray = in_gray(PHOTOS[name])
    sepia = ImageOps.colorize(gray, "#1a0f00", "#fff3d6", "#a07850")
    assert monochrome(np.asarray(sepia)) == "toned"
    assert monochrome(as_jpeg(sepia)) == "toned"
    assert monochrome(np.asarray(ImageOps.colorize(gray, "#001040", "#d0f0ff"))) is None


@pytest.mark.parametrize("size", [(2, 600), (24, 24), (40, 12)])
def test_small_images_are_judged_by_their_colors(size):
    assert monochrome(np.full((*size, 3), 90, np.uint8)) == "gray"
    colored = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert monochrome(colored // 2 + np.array([120, 40, 0], np.uint8)) != "gray"
