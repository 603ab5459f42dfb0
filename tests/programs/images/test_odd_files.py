"""Files that Pillow misreads are read correctly, or refused in one line: WhiteIsZero, planes, JPEG 2000, XBM."""

import io
import struct
import warnings

import numpy as np
import pytest
from PIL import Image

from agenticiqa import AgenticIQA
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.pairs import load_checked
from support.images import as_gray

GRAY = np.add.outer(np.arange(40), np.arange(48)).astype(np.uint16) * 700
RGB = np.dstack([GRAY >> 8, 255 - (GRAY >> 8), np.full_like(GRAY, 60)]).astype(np.uint8)


def tiff(planes: list[np.ndarray], photometric: int, *, order: str = "<", orientation: int = 1) -> bytes:
    """Return an uncompressed TIFF of whole planes (H, W): one, or several one after the other (planar)."""
    (height, width), bits = planes[0].shape, planes[0].dtype.itemsize * 8
    strips = [plane.astype(plane.dtype.newbyteorder(order)).tobytes() for plane in planes]
    count = len(planes)
    values = {
        256: [width],
        257: [height],
        258: [bits] * count,
        259: [1],
        262: [photometric],
        273: [0] * count,
        274: [orientation],
        277: [count],
        278: [height],
        279: [len(strip) for strip in strips],
        284: [2 if count > 1 else 1],
    }
    longs = {273, 279}
    beyond = sum(
        len(v) * (4 if tag in longs else 2) for tag, v in values.items() if len(v) > (1 if tag in longs else 2)
    )
    start = 8 + 2 + 12 * len(values) + 4
    values[273] = [start + beyond + n * len(strips[0]) for n in range(count)]
    directory, rest = b"", b""
    for tag, found in values.items():
        data = struct.pack(f"{order}{len(found)}{'I' if tag in longs else 'H'}", *found)
        directory += struct.pack(f"{order}HHI", tag, 4 if tag in longs else 3, len(found))
        directory += data.ljust(4, b"\0") if len(data) <= 4 else struct.pack(f"{order}I", start + len(rest))
        rest += b"" if len(data) <= 4 else data
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(values))
    return head + directory + bytes(4) + rest + b"".join(strips)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("white_is_zero", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
def test_gray_tiff_is_not_inverted(bits: int, white_is_zero: bool, orientation: int) -> None:
    values = GRAY if bits == 16 else (GRAY >> 8).astype(np.uint8)
    top = 65535 if bits == 16 else 255
    data = tiff([top - values if white_is_zero else values], 0 if white_is_zero else 1, orientation=orientation)
    turned = {1: GRAY, 3: GRAY[::-1, ::-1], 6: np.rot90(GRAY, -1)}[orientation]
    assert np.abs(load(data).pixels.astype(int) - as_gray(turned / 257)).max() <= 1


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_compressed_16_bit_white_is_zero(compression: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(65535 - GRAY).save(buffer, "TIFF", compression=compression, tiffinfo={262: 0})
    with Image.open(io.BytesIO(buffer.getvalue())) as image:
        assert image.tag_v2[262] == 0
    assert np.abs(load(buffer.getvalue()).pixels.astype(int) - as_gray(GRAY / 257)).max() <= 1


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate"])
def test_a_damaged_compressed_tiff_is_refused(compression: str) -> None:
    buffer = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 48), dtype=np.uint8)
    Image.fromarray(noise).convert("RGB").save(buffer, "TIFF", compression=compression)
    data = bytearray(buffer.getvalue())
    data[100:160] = bytes(60)
    with pytest.raises(ImageError, match=r"damaged or cut short .*; get the file again"):
        load(bytes(data))


@pytest.mark.parametrize("order", ["<", ">"])
def test_separate_planes_are_read_correctly_or_refused(order: str) -> None:
    assert np.array_equal(load(tiff([*np.moveaxis(RGB, -1, 0)], 2, order=order)).pixels, RGB)
    with pytest.raises(ImageError, match="a TIFF with planes that Pillow misreads; save it as PNG"):
        load(tiff([channel.astype(np.uint16) * 257 for channel in np.moveaxis(RGB, -1, 0)], 2, order=order))


INDEX = (GRAY // 700 // 4 % 16).astype(np.uint8)
COLORS = [(n, 255 - n, 7) for n in range(16)]
PLAIN = [(0, 0, 1), (1, 0, 2), (2, 0, 3)]
REVERSED = [(0, 0, 3), (1, 0, 2), (2, 0, 1)]


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), kind) + content


def defined(channels: list[tuple[int, int, int]]) -> bytes:
    return box(b"cdef", struct.pack(">H", len(channels)) + b"".join(struct.pack(">HHH", *each) for each in channels))


def palette(colors: list[tuple[int, ...]]) -> list[tuple[bytes, bytes]]:
    table = struct.pack(">HB", len(colors), 3) + bytes([7]) * 3 + b"".join(map(bytes, colors))
    mapping = b"".join(struct.pack(">HBB", 0, 1, column) for column in range(3))
    return [(b"colr", struct.pack(">BBBI", 1, 0, 0, 16)), (b"pclr", table), (b"cmap", mapping)]


def jp2(pixels: np.ndarray, boxes: list[tuple[bytes, bytes]], more: bytes = b"") -> bytes:
    """Return a JPEG 2000 file with further boxes in its header; a colr replaces its own."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG2000", irreversible=False, mct=0)
    data = buffer.getvalue()
    start = data.index(b"jp2h") - 4
    (size,) = struct.unpack_from(">I", data, start)
    header = data[start + 8 : start + size]
    if boxes:
        header = header[: header.index(b"colr") - 4] + b"".join(box(*each) for each in boxes)
    return data[:start] + box(b"jp2h", header + more) + data[start + size :]


@pytest.mark.parametrize(
    "data",
    [
        jp2(INDEX, palette(COLORS)),
        jp2(RGB, [], defined(REVERSED)),
        jp2(np.dstack([RGB, RGB[..., 0]]), []).replace(struct.pack(">HHH", 3, 1, 0), struct.pack(">HHH", 3, 2, 0)),
    ],
)
def test_files_that_pillow_would_misread_are_refused(data: bytes) -> None:
    with pytest.raises(ImageError, match=r"expected an image that Pillow reads correctly, found .*; save it as PNG"):
        load(data)


def test_usual_channels_of_jpeg_2000_are_read() -> None:
    assert np.array_equal(load(jp2(RGB, [], defined(PLAIN))).pixels, RGB)
    assert np.array_equal(load(jp2(RGB, [])).pixels, RGB)
    buffer = io.BytesIO()
    Image.fromarray(RGB).save(buffer, "JPEG2000", irreversible=False, no_jp2=True)
    assert np.array_equal(load(buffer.getvalue()).pixels, RGB)


def test_an_x_bitmap_is_refused_as_a_drawing() -> None:
    buffer = io.BytesIO()
    Image.new("1", (16, 16)).save(buffer, "XBM")
    with pytest.raises(ImageError, match="found a drawing"):
        load(buffer.getvalue())


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_premultiplied_alpha_is_read(mode: str) -> None:
    image = Image.fromarray(np.dstack([RGB, GRAY >> 8]).astype(np.uint8)).convert(mode.upper())
    difference = load(image.convert(mode)).pixels.astype(int) - load(image).pixels
    assert np.abs(difference).max() <= 2


def test_a_higher_max_pixels_accepts_more_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    Image.new("L", (400, 300)).save(buffer, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    monkeypatch.setattr("agenticiqa.programs.images.decoding.PILLOW_WARNS", 20_000)
    with pytest.raises(ImageError, match="scale the image down, or raise max_pixels"):
        load(buffer.getvalue(), max_pixels=20_000)
    assert load(buffer.getvalue(), max_pixels=120_000).size == (400, 300)
    assert Image.MAX_IMAGE_PIXELS == 10_000
    with pytest.raises(ImageError, match=r"expected 1 to 119999 pixels, found 400x300 = 120000; .* set max_pixels"):
        load(buffer.getvalue(), max_pixels=119_999)
    program = AgenticIQA.from_config({"max_pixels": 119_999})
    with pytest.raises(ImageError, match="set max_pixels"):
        program(buffer.getvalue())
    with pytest.raises(ImageError, match="set max_pixels"):
        program(np.zeros((10, 10, 3), np.uint8), reference=buffer.getvalue(), resize_reference=True)


def test_a_warning_of_pillow_becomes_a_note() -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 48)).save(file, "TIFF")
    data = bytearray(file.getvalue())
    start = struct.unpack_from("<I", data, 4)[0] + 2
    width = next(start + 12 * n for n in range(20) if struct.unpack_from("<H", data, start + 12 * n) == (256,))
    struct.pack_into("<HHIHH", data, width, 256, 3, 2, 64, 64)  # two widths
    with warnings.catch_warnings(action="error"):
        loaded = load(bytes(data))
    assert any("tag 256 had too many entries" in note for note in loaded.notes)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "I;16", "P"])
def test_conversion_in_bands_gives_the_same_pixels(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (50, 37, 4), np.uint8)
    image = Image.fromarray(pixels if mode == "RGBA" else pixels[..., :3])
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 200 + pixels[..., 1])
        image.info["transparency"] = int(np.asarray(image)[40, 3])
    elif mode != "RGBA":
        image = image.convert(mode)
    whole = load(image)
    monkeypatch.setattr("agenticiqa.programs.images.decoding.BAND", 4 * 37)
    bands = load(image)
    assert np.array_equal(whole.pixels, bands.pixels)
    assert whole.notes == bands.notes
    assert not bands.pixels.flags.writeable


def test_the_pixel_limit_is_lower_for_webp_and_the_message_has_the_needed_setting() -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (100, 70)).save(buffer, "WEBP")
    found = "expected 1 to 4200 pixels in a WEBP, found 100x70 = 7000; scale the image, or set max_pixels to "
    with pytest.raises(ImageError, match=found) as refused:
        load(buffer.getvalue(), max_pixels=7000)
    needed = int(str(refused.value).partition("max_pixels to ")[2].split()[0])
    assert load(buffer.getvalue(), max_pixels=needed).size == (100, 70)


def test_a_very_large_pair_is_compared_at_a_reduced_size(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (150, 200, 3), np.uint8)
    pixels = np.asarray(Image.fromarray(pixels).resize((400, 300), Image.Resampling.BICUBIC))
    image = pixels.copy()
    image[100:200, 100:200] //= 2
    whole = load_checked(image, pixels)
    assert whole.image.size == (400, 300)
    monkeypatch.setattr("agenticiqa.programs.images.pairs.LARGEST_PAIR", 400 * 300 // 4)
    monkeypatch.setattr("agenticiqa.programs.images.arrays.BAND", 400 * 8)
    pair = load_checked(image, pixels)
    assert pair.reference is not None
    assert pair.image.size == pair.reference.size == (200, 150)
    assert np.array_equal(pair.image.pixels, np.asarray(Image.fromarray(image).reduce(2)))
    assert pair.image.data == whole.image.data
    message = "The pair of 400 x 300 pixels was compared at 200 x 150 (means of 2 x 2 pixels)"
    assert [note.startswith(message) for note in pair.image.notes] == [True]
    with pytest.raises(ImageError, match="expected a reference of the image's size 400x300, got 100x75"):
        load_checked(image, pixels[::4, ::4].copy())
