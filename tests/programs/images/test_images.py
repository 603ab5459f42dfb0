"""Loading: measured and sent pixels are those that a viewer shows, and other files are refused."""

import base64
import dataclasses
import hashlib
import io
import os
import struct
import tracemalloc
import warnings
import weakref
import zlib
from pathlib import Path

import numpy as np
import PIL
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.programs.errors import ImageError, ImageNotFound
from agenticiqa.programs.images import LoadedImage, load, load_pair
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.images.sources import CHUNK
from support.images import raw_png

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (6, 9, 3), dtype=np.uint8)
EIGHT_WAYS = {
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.transpose(1, 0, 2),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: np.rot90(p, 2).transpose(1, 0, 2),
    8: lambda p: np.rot90(p, 1),
}


def encoded(image: Image.Image | np.ndarray, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(buffer, kind, **options)
    return buffer.getvalue()


def reopened(loaded: LoadedImage) -> Image.Image:
    return Image.open(io.BytesIO(loaded.data))


def sent(loaded: LoadedImage) -> tuple[str, bytes]:
    """Return mime type and bytes of the data URI that DSPy puts into a request."""
    header, content = loaded.to_dspy().url.split(",", 1)
    return header.removeprefix("data:").removesuffix(";base64"), base64.b64decode(content, validate=True)


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


def refusal(source: object, **options: int) -> str:
    """Return the one-line message that refuses a source."""
    with pytest.raises(ImageError) as caught:
        load(source, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable(), "one line, nothing that could upset a terminal"
    assert "expected" in message
    assert ";" in message, "what was expected and found; what to do"
    return message


# --- what is sent, and what it is called ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "mime"),
    [
        ("JPEG", {"quality": 95}, "image/jpeg"),
        ("JPEG", {"quality": 30, "progressive": True}, "image/jpeg"),
        ("PNG", {}, "image/png"),
        ("WEBP", {"quality": 90}, "image/webp"),
        ("WEBP", {"lossless": True}, "image/webp"),
    ],
)
def test_a_jpeg_png_or_webp_reaches_the_model_byte_for_byte(
    tmp_path: Path, kind: str, options: dict[str, object], mime: str
) -> None:
    data = encoded(PHOTO, kind, **options)
    path = tmp_path / "picture"
    path.write_bytes(data)
    loaded = load(path)
    assert sent(loaded) == (mime, data)
    assert loaded.data == data
    assert loaded.sha256 == hashlib.sha256(data).hexdigest()
    assert np.array_equal(loaded.pixels, np.asarray(Image.open(path)))
    assert loaded.notes == ()


@pytest.mark.parametrize("kind", ["BMP", "DIB", "TIFF", "PPM", "TGA", "JPEG2000", "PCX", "SGI", "QOI"])
def test_other_formats_are_sent_as_a_png_of_the_same_pixels(kind: str) -> None:
    data = encoded(PHOTO, kind, **({"irreversible": False} if kind == "JPEG2000" else {}))
    loaded = load(data)
    mime, content = sent(loaded)
    assert mime == "image/png"
    assert reopened(loaded).format == "PNG"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), PHOTO)
    assert np.array_equal(loaded.pixels, PHOTO)
    assert loaded.sha256 == hashlib.sha256(data).hexdigest(), "the id is that of the file, not of the PNG"


@given(
    pixels=st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(lambda size: arrays(np.uint8, (*size, 3))),
    kind=st.sampled_from(["PNG", "WEBP", "BMP", "TIFF", "PPM", "TGA"]),
)
def test_no_lossless_format_changes_a_pixel(pixels: np.ndarray, kind: str) -> None:
    data = encoded(pixels, kind, **({"lossless": True} if kind == "WEBP" else {}))
    loaded = load(data)
    assert np.array_equal(loaded.pixels, pixels)
    assert np.array_equal(np.asarray(reopened(loaded).convert("RGB")), pixels)


def test_loading_a_loaded_image_returns_it() -> None:
    data = encoded(PHOTO, "PNG")
    first, second = load(data), load(data)
    assert first != second
    assert load(first) is first
    assert load_pair(first, second) == (first, second)
    assert load_pair(first, None) == (first, None)
    assert (first.pixels.dtype, first.pixels.shape, first.size) == (np.uint8, (6, 9, 3), (9, 6))
    with pytest.raises(ValueError, match="read-only"):
        first.pixels[0, 0, 0] = 1
    kept = weakref.WeakKeyDictionary({first: "measured"})
    assert kept[first] == "measured"
    assert second not in kept
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.mime = "image/gif"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["photo.JPG", "bild öäü 写真.png", "wrong.tiff", "no_suffix", "two.dots.gif"])
def test_the_content_and_not_the_suffix_decides_the_format(tmp_path: Path, name: str) -> None:
    data = encoded(PHOTO, "JPEG")
    path = tmp_path / name
    path.write_bytes(data)
    for source in (path, str(path)):
        loaded = load(source)
        assert loaded.mime == "image/jpeg"
        assert loaded.data == data
        assert loaded.source == str(path)


# --- kinds of pixels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_is_applied(kind: str, orientation: int) -> None:
    blocks = np.kron(PHOTO, np.ones((16, 16, 1), np.uint8))  # whole JPEG blocks of one color survive compression
    best: dict[str, dict[str, object]] = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}
    options = best.get(kind, {})
    data = encoded(blocks, kind, exif=exif(orientation), **options)
    loaded = load(data)
    upright = EIGHT_WAYS[orientation](blocks)
    assert loaded.pixels.shape == upright.shape
    assert np.abs(loaded.pixels.astype(int) - upright).max() <= (3 if kind == "JPEG" else 0)
    assert len(loaded.notes) == (orientation > 1)
    if orientation > 1:
        assert f"orientation {orientation} " in loaded.notes[0]
    assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)
    assert 0x0112 not in reopened(loaded).getexif(), "a reader must not turn it again"
    assert (reopened(loaded).format == kind) == (kind == "PNG" or (orientation == 1 and kind != "TIFF"))


@pytest.mark.parametrize("garbage", [b"Exif\0\0garbage", b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_invalid_exif_is_ignored(kind: str, garbage: bytes) -> None:
    loaded = load(encoded(PHOTO, kind, exif=garbage))
    assert loaded.size == (9, 6)
    assert all(note.startswith("Pillow warns: Corrupt EXIF data") for note in loaded.notes)


def test_a_photo_with_unusual_exif_tags_is_turned_upright() -> None:
    """ImageOps.exif_transpose would refuse it: it rewrites the tags, and fails on a width of type double."""
    tags = struct.pack("<HHHIHH", 2, 0x0112, 3, 1, 6, 0) + struct.pack("<HHII", 0x0100, 12, 1, 38)
    garbage = b"Exif\0\0II*\0" + struct.pack("<I", 8) + tags + struct.pack("<I", 0) + struct.pack("<d", 0.5)
    data = encoded(PHOTO, "PNG", exif=garbage)
    assert np.array_equal(load(data).pixels, EIGHT_WAYS[6](PHOTO))
    with pytest.raises(struct.error):
        ImageOps.exif_transpose(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_transparency_is_measured_and_sent_over_white(kind: str) -> None:
    alpha = np.array([[0, 64, 128, 255]], np.uint8)
    pixels = np.dstack([np.full((1, 4), value, np.uint8) for value in (200, 100, 0)] + [alpha])
    data = encoded(pixels, kind, **({"lossless": True, "exact": True} if kind == "WEBP" else {}))
    loaded = load(data)
    weight = alpha[..., None] / 255
    assert np.abs(loaded.pixels - (pixels[..., :3] * weight + 255 * (1 - weight))).max() <= 1
    assert loaded.pixels[0, 0].tolist() == [255, 255, 255]
    assert loaded.pixels[0, 3].tolist() == [200, 100, 0]
    assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)
    assert "over white" in loaded.notes[0]
    opaque = load(encoded(np.dstack([PHOTO, np.full((6, 9), 255, np.uint8)]), "PNG"))
    assert np.array_equal(opaque.pixels, PHOTO)
    assert opaque.notes == (), "it hides nothing"


def test_every_other_way_to_be_transparent_is_measured_over_white() -> None:
    gray = np.array([[0, 10, 200]], np.uint8)
    gray_alpha = encoded(
        Image.merge("LA", [Image.fromarray(gray), Image.fromarray(np.where(gray == 10, np.uint8(0), np.uint8(255)))]),
        "PNG",
    )
    color_key = encoded(Image.fromarray(np.dstack([gray] * 3)), "PNG", transparency=(10, 10, 10))
    palette = Image.fromarray(gray, "P")
    palette.putpalette([value for value in range(256) for _ in range(3)])
    for data in (
        gray_alpha,
        color_key,
        encoded(palette, "PNG", transparency=10),
        encoded(palette, "GIF", transparency=10),
    ):
        loaded = load(data)
        assert loaded.pixels[0, :, 0].tolist() == [0, 255, 200]
        assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)
    deep = raw_png(3, 1, 16, 0, struct.pack(">3H", 0, 1000, 65535), (b"tRNS", struct.pack(">H", 1000)))
    assert load(deep).pixels[0, :, 0].tolist() == [0, 255, 255]


def test_sixteen_bit_grey_is_scaled() -> None:
    values = np.array([[0, 128, 129, 257, 32768, 65535]], np.uint16)
    expected = [0, 0, 1, 1, 128, 255]
    png, tiff, jp2 = (encoded(values, kind) for kind in ("PNG", "TIFF", "JPEG2000"))
    big_endian_tiff = encoded(Image.frombytes("I;16B", (6, 1), values.astype(">u2").tobytes()), "TIFF")
    pgm = b"P5 6 1 65535\n" + values.astype(">u2").tobytes()
    for data in (png, tiff, big_endian_tiff, pgm, jp2):
        loaded = load(data)
        assert loaded.pixels[0].tolist() == [[value] * 3 for value in expected]
        assert "257" in loaded.notes[0]
        assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)


def test_sixteen_bit_color_is_measured_at_eight_bits() -> None:
    values = RNG.integers(0, 65536, (3, 4, 3), dtype=np.uint16)
    data = raw_png(4, 3, 16, 2, values.astype(">u2").tobytes(), None)
    ppm = b"P6 4 3 65535\n" + values.astype(">u2").tobytes()
    for source in (data, ppm):
        loaded = load(source)
        assert np.abs(loaded.pixels - values / 257).max() <= 1
        assert "8 bits" in loaded.notes[0]
        assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_is_measured_as_rgb(kind: str) -> None:
    inks = np.zeros((16, 16, 4), np.uint8)
    inks[..., 1] = 255  # magenta
    inks[..., 3] = 51  # a fifth black
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"quality": 100} if kind == "JPEG" else {}
    data = encoded(Image.frombytes("CMYK", (16, 16), inks.tobytes()), kind, icc_profile=profile, **options)
    loaded = load(data)
    assert np.abs(loaded.pixels.astype(int) - [204, 0, 204]).max() <= 3
    assert any("CMYK" in note for note in loaded.notes)
    assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)
    assert "icc_profile" not in reopened(loaded).info, "a profile for inks says nothing about RGB"


def test_ycck_is_measured_as_rgb() -> None:
    # Pillow inverts what it stores and marks it as CMYK (Adobe transform 0). With transform 2 the same samples are
    # YCCK: Y, Cb and Cr then code 255 minus each stored ink, and a stored ink is inverted, so it is an amount of light.
    y, cb, cr, k = 90, 100, 160, 220
    samples = Image.frombytes("CMYK", (16, 16), bytes([255 - y, 255 - cb, 255 - cr, 255 - k]) * 256)
    data = bytearray(encoded(samples, "JPEG", quality=100))
    data[data.index(b"Adobe") + 11] = 2
    loaded = load(bytes(data))
    coded = [y + 1.402 * (cr - 128), y - 0.344136 * (cb - 128) - 0.714136 * (cr - 128), y + 1.772 * (cb - 128)]
    assert np.array_equal(np.asarray(reopened(loaded)), loaded.pixels)
    assert any("CMYK" in note for note in loaded.notes)
    assert np.abs(loaded.pixels[8, 8] - (255 - np.array(coded)) * k / 255).max() <= 4


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA"])
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "GIF"])
def test_bilevel_gray_and_palette_become_rgb_without_a_note(mode: str, kind: str) -> None:
    if (mode, kind) == ("LA", "GIF"):
        pytest.skip("GIF has no such transparency")
    image = Image.fromarray(PHOTO).convert("L").convert(mode)
    loaded = load(encoded(image, kind))
    assert np.array_equal(loaded.pixels, np.asarray(image.convert("RGB")))
    assert np.array_equal(np.asarray(reopened(loaded).convert("RGB")), loaded.pixels)
    assert loaded.notes == ()


@pytest.mark.parametrize(
    ("kind", "mode"),
    [(kind, mode) for kind in ("PNG", "WEBP", "BMP", "TIFF") for mode in ("RGB", "L", "1", "P", "RGBA")]
    + [("JPEG", "RGB"), ("JPEG", "L")],
)
def test_one_pixel_is_an_image(kind: str, mode: str) -> None:
    if (kind, mode) == ("BMP", "P") and int(PIL.__version__.split(".")[0]) < 13:
        pytest.skip("Pillow before 13 cannot read this one, and it is refused")
    assert load(encoded(Image.new(mode, (1, 1)), kind)).pixels.shape == (1, 1, 3)


# --- several frames ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_of_several_frames_is_measured_and_sent(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "lime", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    loaded = load(data)
    assert np.array_equal(loaded.pixels, np.asarray(frames[0]))
    assert loaded.mime == "image/png"
    assert getattr(reopened(loaded), "n_frames", 1) == 1
    assert np.array_equal(np.asarray(reopened(loaded).convert("RGB")), loaded.pixels)
    assert "3 frames" in loaded.notes[0]


def test_the_first_picture_of_a_jpeg_with_several_is_sent() -> None:
    first, second = (Image.new("RGB", (16, 16), color) for color in ("red", "blue"))
    loaded = load(encoded(first, "MPO", save_all=True, append_images=[second]))
    assert sent(loaded) == ("image/jpeg", encoded(first, "JPEG"))
    assert np.abs(loaded.pixels.astype(int) - [255, 0, 0]).max() <= 2
    assert "2 frames" in loaded.notes[0]


# --- PIL images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I;16"])
def test_a_pil_image_becomes_a_png_that_looks_the_same(mode: str) -> None:
    image = Image.fromarray(np.arange(6, dtype=np.uint16).reshape(2, 3) * 9999) if mode == "I;16" else None
    image = image or Image.fromarray(PHOTO).convert("RGB").convert(mode)
    loaded = load(image)
    assert loaded.mime == "image/png"
    assert loaded.sha256 == hashlib.sha256(loaded.data).hexdigest()
    assert np.array_equal(load(loaded.data).pixels, loaded.pixels)
    if mode != "I;16":
        assert np.array_equal(loaded.pixels, np.asarray(image.convert("RGB")))


def test_a_pil_image_is_measured_as_a_viewer_shows_it_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "phone.png"
    path.write_bytes(encoded(PHOTO, "PNG", exif=exif(6)))
    image = Image.open(path)
    loaded = load(image)
    assert np.array_equal(loaded.pixels, load(path).pixels)
    assert np.array_equal(load(loaded.data).pixels, loaded.pixels), "the PNG is upright and has no tag left"
    assert image.size == (9, 6)
    assert image.getexif()[0x0112] == 6


def test_the_current_frame_of_an_animated_pil_image_is_measured() -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    image = Image.open(io.BytesIO(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])))
    image.seek(1)
    assert load(image).pixels[0, 0].tolist() == [0, 0, 255]


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.9])
def test_a_file_cut_short_is_refused(kind: str, share: float) -> None:
    noise = RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(noise, kind)
    assert load(data).size == (64, 64)
    message = refusal(data[: int(len(data) * share)])
    assert "damaged" in message or "cannot" in message or "Pillow cannot read" in message


@given(
    kind=st.sampled_from(["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM"]),
    length=st.floats(0, 1),
    damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
)
@pytest.mark.filterwarnings("ignore")
def test_damaged_bytes_are_either_loaded_or_refused(kind: str, length: float, damage: list[tuple[float, int]]) -> None:
    data = bytearray(encoded(PHOTO, kind))
    del data[1 + int(length * len(data)) :]
    for place, value in damage:
        data[int(place * len(data))] = value
    try:
        outcome = load(bytes(data), max_pixels=10**6).source
    except ImageError as error:
        outcome = str(error)
    assert outcome == "<bytes>" or outcome.startswith("<bytes>: expected")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "empty file"),
        (b"just some words\nin two lines", "text that begins with 'just some words"),
        (b"<!doctype html><title>404</title>", "text that begins with '<!doctype html>"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG drawing"),
        (b"%PDF-1.7\n\xe2\xe3", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n", "drawing (EPS)"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIF"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "video"),
        (b"\xff\xd8\xff\xe0", "JPEG with a damaged header"),
        (b"\x89PNG\r\n\x1a\n", "damaged header"),
        (b"II*\0raw", "a TIFF or raw photo that Pillow cannot read; convert it"),
        (b"raw draws", "text that begins with 'raw draws'; give a JPEG"),
        (bytes(range(32)), "data of an unknown kind"),
    ],
)
def test_files_that_are_not_images_are_described(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "two\nlines\x1b[31m.png"
    path.write_bytes(data)
    assert found in refusal(path)
    assert "two lines" in refusal(path), "on one line"
    assert found in refusal(data)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_values_of_unknown_range_are_refused(mode: str) -> None:
    image = Image.new(mode, (4, 4))
    assert f"mode {mode}" in refusal(encoded(image, "TIFF"))
    assert f"mode {mode}" in refusal(image)


def test_twelve_bit_grey_is_refused() -> None:
    tags = [(256, 2), (257, 1), (258, 12), (259, 1), (262, 1), (273, 110), (277, 1), (278, 1), (279, 3)]
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags)
    tiff = (b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + b"\0" * 4).ljust(110, b"\0") + b"\xff\xf8\x00"
    assert "8 or 16 bits" in refusal(tiff)


@pytest.mark.parametrize("size", [(50_000, 50_000), (12_000, 12_000), (2_000, 1_000)])
def test_too_many_pixels_are_refused_by_the_header_alone(size: tuple[int, int]) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    bomb = raw_png(*size, 8, 2, b"", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        message = refusal(bomb, max_pixels=1_999_999)
    assert str(size[0] * size[1]) in message
    assert "damaged" not in message
    assert "1999999" in message or "178956970" in message
    assert limit == Image.MAX_IMAGE_PIXELS


def test_an_image_with_the_largest_allowed_number_of_pixels_is_accepted() -> None:
    data = encoded(np.zeros((10, 20, 3), np.uint8), "PNG")
    assert load(data, max_pixels=200).size == (20, 10)
    assert "20x10 = 200" in refusal(data, max_pixels=199)
    assert "20x10 = 200" in refusal(Image.open(io.BytesIO(data)), max_pixels=199)
    assert "0x5" in refusal(Image.new("RGB", (0, 5)))


def test_a_missing_file_is_reported_with_its_path(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.png"
    with pytest.raises(ImageNotFound, match=r"nowhere\.png: .*no such file"):
        load(missing)
    for bad in ("", "a\0b", "x" * 5000):
        with pytest.raises(ImageNotFound):
            load(bad)
    with pytest.raises(FileNotFoundError):
        load(missing)


def test_a_folder_a_pipe_and_another_type_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "folder" in refusal(tmp_path)
    assert "pipe" in refusal(tmp_path / "pipe")
    assert "got NoneType" in refusal(None)


def test_a_file_larger_than_any_image_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(MOST_PLAIN_BYTES + 1)
    assert f"it has {MOST_PLAIN_BYTES + 1} bytes; at most {MOST_PLAIN_BYTES} are read" in refusal(path)


@pytest.mark.parametrize("size", [CHUNK + 1, MOST_BYTES])
def test_of_a_large_file_that_is_no_image_only_the_beginning_is_read(tmp_path: Path, size: int) -> None:
    with (tmp_path / "sparse.jpg").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        assert "unknown kind" in refusal(tmp_path / "sparse.jpg")
        with (tmp_path / "sparse.jpg").open("rb") as file:
            assert "unknown kind" in refusal(file)
        with Path("/dev/zero").open("rb") as endless:
            assert "unknown kind" in refusal(endless)
        assert tracemalloc.get_traced_memory()[1] < 10 * CHUNK
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "JPEG", "WEBP", "GIF", "BMP", "PPM", "TGA", "AVIF", "JPEG2000"])
def test_a_large_file_of_every_format_is_read(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenticiqa.programs.images.sources.CHUNK", 64)
    path = tmp_path / "photo"
    path.write_bytes(encoded(Image.fromarray(PHOTO), form))
    assert load(path).size == load(path.open("rb")).size == PHOTO.shape[1::-1]


def progressive(scans: int, more: bytes = b"") -> bytes:
    """Return a progressive JPEG with about this many scans, of which the last one is repeated."""
    data = encoded(Image.fromarray(PHOTO), "JPEG", progressive=True)
    last = data.rfind(b"\xff\xc4", 0, data.rfind(b"\xff\xda"))
    return data[:2] + more + data[2:-2] + data[last:-2] * scans + data[-2:]


def test_a_jpeg_of_very_many_scans_is_refused_before_it_is_decoded() -> None:
    assert "at most 500 scans" in refusal(progressive(600))
    assert "at most 500 scans" in refusal(Image.open(io.BytesIO(progressive(600))))
    comment = b"\xff\xfe" + struct.pack(">H", 2 + 2000) + b"\xff\xda" * 1000
    for data in (progressive(400), progressive(10, comment), progressive(10) + b"\xff\xda" * 1000):
        assert load(data).size == PHOTO.shape[1::-1], "the comment and what follows the picture are no scans"


@pytest.mark.parametrize("size", [(1, 1_000_001), (1_000_001, 1)])
def test_a_very_long_side_is_refused(size: tuple[int, int]) -> None:
    assert "sides of at most 1000000 pixels" in refusal(raw_png(*size, 8, 0, b"", None))
    assert "sides of at most 1000000 pixels" in refusal(b"P5 %d %d 255 " % size + bytes(1_000_001))
    assert "sides of at most 1000000 pixels" in refusal(np.zeros(size, np.uint8))


@pytest.mark.parametrize("form", ["TIFF", "PNG", "GIF", "BMP", "MPO", "WEBP"])
@pytest.mark.filterwarnings("error")
def test_the_limit_of_pillow_is_raised_for_decoding_too(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Image.new("RGB", (300, 200)), form)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1_000)
    monkeypatch.setattr("agenticiqa.programs.images.decoding.PILLOW_WARNS", 1_000)
    assert load(data).size == (300, 200)
    assert Image.MAX_IMAGE_PIXELS == 1_000


def with_chunks(*chunks: tuple[bytes, bytes], wrong: bytes = b"", after: bool = False) -> bytes:
    """Return a PNG of ``PHOTO`` with further chunks, and a wrong checksum in those of a kind."""
    parts, at, data = [], 8, encoded(Image.fromarray(PHOTO), "PNG")
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        parts.append((data[at + 4 : at + 8], data[at + 8 : end - 4]))
        at = end
    place = len(parts) - 1 if after else 1
    parts[place:place] = chunks
    sums = [zlib.crc32(kind + content) ^ (kind == wrong) for kind, content in parts]
    pairs = zip(parts, sums, strict=True)
    return data[:8] + b"".join(struct.pack(">I", len(c)) + k + c + struct.pack(">I", n) for (k, c), n in pairs)


LONG = zlib.compress(bytes(2**21))
TURNED = b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\3\0\0\0\0\0\0"  # orientation 3
HEX = b"\nexif\n 26\n" + TURNED.hex().encode() + b"\n" + b"00" * 2**20
METADATA = {
    "zTXt": [(b"zTXt", b"workflow\0\0" + LONG)],
    "iTXt": [(b"iTXt", b"workflow\0\1\0\0\0" + LONG)],
    "iCCP": [(b"iCCP", b"monitor\0\0" + LONG)],
    "much tEXt": [(b"tEXt", b"workflow\0" + b"x" * 2**19)] * 3,
    "much zTXt": [(b"zTXt", b"workflow\0\0" + zlib.compress(bytes(2**19)))] * 3,
    "unknown packing": [(b"zTXt", b"workflow\0\7abc")],
    "cut short": [(b"gAMA", b"\0")],
    "with EXIF": [(b"zTXt", b"workflow\0\0" + LONG), (b"eXIf", TURNED)],
    "large EXIF": [(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(HEX))],
}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", METADATA)
def test_an_intact_png_is_read_with_any_metadata(name: str, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("much"):
        monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_MEMORY", 2**20)  # bytes, a 64th of the usual
    image = load(with_chunks(*METADATA[name], after=after))
    assert np.array_equal(image.pixels, PHOTO[::-1, ::-1] if "EXIF" in name else PHOTO)


def test_a_large_color_profile_of_a_png_is_used() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes() + bytes(2**21)
    profile = struct.pack(">I", len(profile)) + profile[4:]
    image = load(with_chunks((b"iCCP", b"sRGB\0\0" + zlib.compress(profile))))
    assert np.array_equal(image.pixels, PHOTO)
    assert not image.has_doubtful_colors


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", ["tEXt", "zTXt", "pHYs", "eXIf", "iCCP", "tRNS", "prVt"])
def test_a_side_chunk_with_a_wrong_checksum_is_ignored_with_a_note(kind: str, after: bool) -> None:
    image = load(with_chunks((kind.encode(), b"Comment\0\0hello"), wrong=kind.encode(), after=after))
    assert np.array_equal(image.pixels, PHOTO)
    assert [note for note in image.notes if kind in note and "wrong checksum" in note]
    assert image.sent == "measured pixels (PNG)", "a server may refuse the file"


@pytest.mark.parametrize("kind", ["IHDR", "IDAT"])
def test_a_wrong_checksum_of_the_pixels_is_an_error(kind: str) -> None:
    assert f"wrong checksum in {kind}" in refusal(with_chunks(wrong=kind.encode()))


def test_an_unreadable_file_is_refused() -> None:
    unreadable = Path("/proc/self/mem")
    if not unreadable.exists():
        pytest.skip("no file here that exists and cannot be read")
    assert "cannot be read" in refusal(unreadable)


# --- pairs ------------------------------------------------------------------------------------------------------


def test_a_reference_of_another_size_is_refused_with_both_sizes_and_the_flag() -> None:
    with pytest.raises(ImageError, match=r"9x6.*18x12.*resize_reference"):
        load_checked(Image.fromarray(PHOTO), Image.new("RGB", (18, 12)))
    with pytest.raises(ImageError, match=r"9x6.*18x12.*give one of that size"):
        load_pair(Image.fromarray(PHOTO), Image.new("RGB", (18, 12)))


def test_the_reference_is_resized_on_request() -> None:
    large = encoded(np.kron(PHOTO, np.ones((2, 2, 1), np.uint8)), "JPEG", quality=95)
    image, reference, _ = load_checked(Image.fromarray(PHOTO), large, resize_reference=True)
    assert reference is not None
    assert reference.size == image.size
    expected = Image.open(io.BytesIO(large)).resize((9, 6), Image.Resampling.LANCZOS)
    assert np.array_equal(reference.pixels, np.asarray(expected))
    assert np.array_equal(np.asarray(reopened(reference)), reference.pixels), "what is seen is what is measured"
    assert reference.mime == "image/png"
    assert reference.sha256 == hashlib.sha256(large).hexdigest()
    assert "18x12" in reference.notes[-1]
    assert not reference.pixels.flags.writeable
    turned = encoded(np.rot90(PHOTO), "PNG", exif=exif(6))
    assert load_pair(Image.fromarray(PHOTO), turned)[1].size == (9, 6), "sizes are compared upright"
