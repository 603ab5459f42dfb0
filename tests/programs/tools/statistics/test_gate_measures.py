"""The JPEG quality in the header and the effective size of synthetic copies of photos."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.JpegPresets import presets

from agenticiqa.programs.tools.statistics.effective_size import effective_share
from agenticiqa.programs.tools.statistics.jpeg_quality import table_quality
from agenticiqa.programs.tools.statistics.parts import luma_parts

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
PHOTOS = ("astronaut.webp", "chelsea.webp", "coffee.webp")


def photo(name: str) -> Image.Image:
    """Return an example photo at half its size, without traces of compression and with full detail."""
    image = Image.open(EXAMPLES / name).convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def parts(image: Image.Image):
    return luma_parts(np.asarray(image))


def quality_of(image: Image.Image, **how: Any) -> int:
    """Return the estimated quality of a copy as a JPEG."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **how)
    tables = Image.open(buffer).quantization
    return table_quality(tables[0], tables.get(1))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_the_quality_of_libjpeg_is_read_from_the_header(mode: str) -> None:
    image = Image.new(mode, (8, 8))
    assert [quality_of(image, quality=quality) for quality in range(1, 101)] == [*range(1, 101)]


# Table no. 3 of mozjpeg, for luma and chroma.
ROBIDOUX = [
    16, 16, 16, 18, 25, 37, 56, 85, 16, 17, 20, 27, 34, 40, 53, 75, 16, 20, 24, 31, 43, 62, 91, 135,
    18, 27, 31, 40, 53, 74, 106, 156, 25, 34, 43, 53, 69, 94, 131, 189, 37, 40, 62, 74, 94, 124, 169, 238,
    56, 53, 91, 106, 131, 169, 226, 311, 85, 75, 135, 156, 189, 238, 311, 418,
]  # fmt: skip
# Qualities of libjpeg with the same SSIMULACRA2, means of 14 photos that the estimate was not fitted to.
EQUAL = {
    "mozjpeg 20": 18, "mozjpeg 30": 27, "mozjpeg 40": 36, "mozjpeg 50": 46, "mozjpeg 60": 57, "mozjpeg 70": 68,
    "mozjpeg 80": 80, "mozjpeg 90": 90, "flat 3": 96, "flat 6": 91, "flat 10": 80, "flat 16": 62, "flat 24": 40,
    "flat 32": 27, "flat 48": 17, "web_low": 36, "web_medium": 60, "web_high": 84, "web_very_high": 94,
    "web_maximum": 99, "low": 55, "medium": 75, "high": 87, "maximum": 94,
}  # fmt: skip


@pytest.mark.parametrize("encoder", EQUAL)
def test_tables_of_other_encoders_have_the_quality_of_equal_damage(encoder: str) -> None:
    name, _, number = encoder.partition(" ")
    if name == "mozjpeg":
        scale = 5000 // int(number) if int(number) < 50 else 200 - 2 * int(number)
        tables = [[min(max((step * scale + 50) // 100, 1), 255) for step in ROBIDOUX]] * 2
    else:
        tables = [[int(number)] * 64] * 2 if number else presets[name]["quantization"]
    assert abs(quality_of(Image.new("RGB", (8, 8)), qtables=tables) - EQUAL[encoder]) <= 5


@pytest.mark.parametrize("name", PHOTOS)
def test_an_enlarged_copy_has_fewer_effective_pixels(name: str) -> None:
    image = photo(name)
    assert effective_share(parts(image)) == 1
    for factor in (2, 3):
        copy = image.resize((image.width // factor, image.height // factor), Image.Resampling.LANCZOS)
        share = effective_share(parts(copy.resize(image.size, Image.Resampling.LANCZOS)))
        assert share == pytest.approx(1 / factor, rel=0.3)


def test_too_small_or_flat_images_give_no_result() -> None:
    small = photo(PHOTOS[0]).crop((0, 0, 60, 60))
    assert effective_share(parts(small)) is None
    flat = Image.new("RGB", (300, 300), "gray")
    assert effective_share(parts(flat)) == 1
