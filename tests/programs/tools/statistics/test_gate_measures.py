"""The JPEG quality in the header and the effective size of synthetic copies of photos."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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


@pytest.mark.parametrize("quality", [1, 20, 50, 75, 90, 100])
def test_the_quality_of_a_jpeg_is_read_from_its_header(quality: int) -> None:
    buffer = io.BytesIO()
    photo(PHOTOS[0]).save(buffer, "JPEG", quality=quality)
    assert table_quality(Image.open(buffer).quantization[0]) == quality


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
