"""HEIC photos, with pillow-heif and without."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import extra_formats, find_images, load
from agenticiqa.programs.images.decoding import DEEP_COLOR

RNG = np.random.default_rng(5)
GRAY = np.asarray(Image.fromarray(RNG.integers(0, 256, (6, 8), dtype=np.uint8)).resize((64, 48)))
SHAPES = np.stack([GRAY] * 3, axis=-1)  # gray, as the encoder halves the resolution of colors
HEADER = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"


def heic(pixels: np.ndarray, **options: object) -> bytes:
    pillow_heif = pytest.importorskip("pillow_heif", reason="the extra heic is not installed")
    buffer = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(buffer, quality=100, **options)
    return buffer.getvalue()


def test_a_heic_photo_is_measured_as_decoded_and_sent_as_png(tmp_path: Path) -> None:
    path = tmp_path / "photo.HEIC"
    path.write_bytes(heic(SHAPES))
    assert find_images([tmp_path]) == [path]
    image = load(path)
    assert image.size == (64, 48)
    assert np.abs(image.pixels.astype(int) - SHAPES).mean() < 2
    assert image.mime == "image/png"
    sent = np.asarray(Image.open(io.BytesIO(image.data)))
    assert np.array_equal(sent, image.pixels), "without a further loss"


def test_a_heic_photo_of_more_than_8_bits_has_a_note() -> None:
    pillow_heif = pytest.importorskip("pillow_heif", reason="the extra heic is not installed")
    deep = (SHAPES.astype(np.uint16) * 257).astype("<u2")
    buffer = io.BytesIO()
    pillow_heif.from_bytes("RGB;16", (64, 48), deep.tobytes()).save(buffer, quality=100)
    image = load(buffer.getvalue())
    assert DEEP_COLOR in image.notes
    assert np.abs(image.pixels.astype(int) - SHAPES).mean() < 2


def test_a_damaged_heic_photo_is_refused_in_one_line() -> None:
    data = heic(SHAPES)
    for broken in (data[: len(data) // 2], HEADER):
        with pytest.raises(ImageError, match=r"damaged") as caught:
            load(broken)
        assert "\n" not in str(caught.value)


def test_without_the_extra_a_heic_photo_is_refused_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    Image.init()  # else Pillow adds its own formats to the list that is set below, and loses them with it
    monkeypatch.setattr(Image, "ID", [name for name in Image.ID if name != "HEIF"])  # as before it was registered
    path = tmp_path / "photo.heic"
    path.write_bytes(HEADER)
    with pytest.raises(ImageError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path}: expected an image, found a HEIC or HEIF photo, which needs an optional package: "
        "pip install 'agenticiqa[heic]'"
    )
    assert not extra_formats.EXTRA_FORMATS[0].is_installed()
