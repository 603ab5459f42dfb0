"""The past JPEG quality and the effective size of synthetic copies of photos."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.tools.statistics.effective_size import effective_share
from agenticiqa.programs.tools.statistics.jpeg_history import past_quality, table_quality
from agenticiqa.programs.tools.statistics.parts import luma_parts

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
PHOTOS = ("astronaut.webp", "chelsea.webp", "coffee.webp")


def photo(name: str) -> Image.Image:
    """Return an example photo at half its size, without traces of compression and with full detail."""
    image = Image.open(EXAMPLES / name).convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def parts(image: Image.Image):
    return luma_parts(np.asarray(image))


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


@pytest.mark.parametrize("name", PHOTOS)
def test_the_quality_of_a_past_compression_is_found_in_pixels(name: str) -> None:
    image = photo(name)
    assert past_quality(parts(image)) is None
    for quality in (20, 50, 75, 90):
        once = jpeg(image, quality)
        assert past_quality(parts(once.convert("RGB"))) == pytest.approx(quality, abs=3)
        cropped = once.convert("RGB").crop((5, 3, image.width, image.height))
        assert past_quality(parts(cropped)) == pytest.approx(quality, abs=3)
        assert table_quality(once.quantization[0]) == quality
    twice = jpeg(jpeg(image, 40).convert("RGB"), 95)
    assert past_quality(parts(twice.convert("RGB"))) == pytest.approx(40, abs=3)


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
    assert past_quality(parts(jpeg(small, 30).convert("RGB"))) is None
    flat = Image.new("RGB", (300, 300), "gray")
    assert past_quality(parts(flat)) is None
    assert effective_share(parts(flat)) == 1
