"""No metadata is in the bytes that a model receives, and its pixels are those of the file."""

import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs.options import ImageSettings
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.metadata import UnclearStructure, is_clear, without_metadata
from agenticiqa.programs.images.pairs import load_checked
from support.metadata_places import (
    ADOBE,
    IN_PNG,
    JFIF,
    MARK,
    SRGB,
    chunk,
    exif,
    marked_files,
    plain_files,
    riff,
    riff_chunks,
    segment,
)
from support.odd_colors import EIGHT_WAYS, encoded, gama, png

PIXELS = np.asarray(
    Image.fromarray(np.random.default_rng(5).integers(0, 256, (5, 7, 3), dtype=np.uint8)).resize((56, 40))
)
PLAIN = {name: data for name, _, data in plain_files(PIXELS)}
MARKED = {name: rest for name, *rest in marked_files(PIXELS)}
FORMATS = sorted({provider.formats for provider in PROVIDERS.values()}, key=len)


def decoded(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def profile_in(data: bytes) -> bytes | None:
    return Image.open(io.BytesIO(data)).info.get("icc_profile")


@pytest.mark.parametrize("name", PLAIN)
def test_a_file_without_metadata_is_sent_byte_for_byte(name: str) -> None:
    image = load(PLAIN[name])
    assert image.data is image.file
    assert image.sent == "file"
    assert image.sent_sha256 == image.sha256


@pytest.mark.parametrize("name", MARKED)
def test_the_file_is_sent_without_its_metadata(name: str) -> None:
    given, plain = MARKED[name]
    image = load(given)
    assert MARK in given or "zTXt" in name or "ImageMagick" in name
    assert MARK not in image.data
    if name.startswith("WebP") or "lossless WebP" in name:
        assert len(image.data) <= len(plain) + 18, "at most the header VP8X"
    else:
        assert image.data == plain, "the compressed pixels are copied"
    assert np.array_equal(decoded(image.data), image.pixels)
    assert np.array_equal(decoded(plain), image.pixels)
    assert profile_in(image.data) == profile_in(plain)
    assert image.sent == "file without metadata"
    assert image.sent_sha256 != image.sha256
    assert load(image.data).data == image.data


@pytest.mark.parametrize("name", MARKED)
def test_no_form_of_the_image_has_its_metadata(name: str) -> None:
    given, _ = MARKED[name]
    image, reference, _ = load_checked(given, given)
    assert reference is not None
    smaller, aligned = load_checked(given, given, ImageSettings(max_side=32, align=True))[:2]
    for one in (image, reference, smaller, aligned, *(image.sent_as(formats) for formats in FORMATS)):
        assert one is not None
        assert MARK not in one.data


KEPT = {name.partition(": ")[0]: name for name in MARKED}  # one place of each plain file, because no place is read


@pytest.mark.parametrize("name", KEPT.values())
def test_the_file_is_sent_as_it_is_on_request(name: str) -> None:
    given, _ = MARKED[name]
    kept, reference, _ = load_checked(given, given, ImageSettings(keep_metadata=True))
    assert reference is not None
    assert (kept.data, kept.sent, kept.sent_sha256) == (given, "file", kept.sha256)
    assert reference.data == given
    assert MARK not in load_checked(kept, None).image.data or "zTXt" in name, "the settings of each program count"


SENT_AS_PIXELS = {
    "GIF": encoded(PIXELS, "GIF", comment=MARK),
    "TIFF": encoded(PIXELS, "TIFF", description=MARK.decode()),
    "AVIF": encoded(PIXELS, "AVIF", exif=exif(), xmp=MARK),
    "JPEG 2000": encoded(PIXELS, "JPEG2000", comment=MARK),
    "CMYK JPEG": encoded(Image.fromarray(PIXELS).convert("CMYK"), "JPEG", exif=exif(), comment=MARK),
    "PNG with alpha": IN_PNG["tEXt"](encoded(np.dstack([PIXELS, PIXELS[..., :1]]), "PNG", exif=exif())),
    "PNG of another gamma": IN_PNG["tEXt"](png(PIXELS, gama(1.0))),
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", SENT_AS_PIXELS)
def test_an_image_that_is_encoded_anew_has_no_metadata(kind: str, keep: bool) -> None:
    data = SENT_AS_PIXELS[kind]
    assert MARK in data
    for given in (data, Image.open(io.BytesIO(data))):
        image = load_checked(given, None, ImageSettings(keep_metadata=keep)).image
        for one in (image, *(image.sent_as(formats) for formats in FORMATS)):
            assert one.sent.startswith("measured pixels")
            assert MARK not in one.data
            assert not Image.open(io.BytesIO(one.data)).info.keys() & {"exif", "icc_profile", "comment", "xmp"}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_model_sees_the_photo_upright(kind: str, orientation: int, keep: bool) -> None:
    stored = np.ascontiguousarray(EIGHT_WAYS[orientation](PIXELS))
    given = encoded(stored, kind, exif=exif(orientation), **({"lossless": True} if kind == "WEBP" else {}))
    image = load_checked(given, None, ImageSettings(keep_metadata=keep)).image
    assert np.array_equal(decoded(image.data), image.pixels)
    assert (MARK in image.data) == (keep and orientation == 1)
    assert Image.open(io.BytesIO(image.data)).getexif().get(274, 1) == 1


def test_thumbnails_in_headers_that_decoders_need_are_left_out() -> None:
    plain = PLAIN["JPEG without JFIF"]
    for content, code, kept in (
        (JFIF + b"\1\6" + MARK[:18], 0xE0, JFIF + b"\0\0"),
        (ADOBE + MARK, 0xEE, ADOBE),
    ):
        clean = without_metadata(plain[:2] + segment(code, content) + plain[2:])
        assert clean == plain[:2] + segment(code, kept) + plain[2:]


def test_a_profile_in_several_segments_is_kept() -> None:
    plain = PLAIN["JPEG"]
    halves = [b"ICC_PROFILE\0\1\2" + SRGB[:200], b"ICC_PROFILE\0\2\2" + SRGB[200:]]
    whole = plain[:2] + b"".join(segment(0xE2, half) for half in halves) + plain[2:]
    assert without_metadata(whole) == whole
    assert profile_in(whole) == SRGB


def test_a_profile_that_a_webp_does_not_declare_is_left_out() -> None:
    (header, content), *rest = riff_chunks(PLAIN["WebP of sRGB"])
    data = riff((header, bytes(1) + content[1:]), *rest)
    assert profile_in(without_metadata(data)) == profile_in(data)


def _animated(kind: str) -> bytes:
    """Return an animation of one frame."""
    if kind == "WEBP":
        frame = riff_chunks(PLAIN["WebP"])[0]
        sides = struct.pack("<I", 55)[:3] + struct.pack("<I", 39)[:3]
        body = bytes(6) + sides + bytes(4) + riff(frame)[12:]
        return riff((b"VP8X", b"\2" + bytes(3) + sides), (b"ANIM", bytes(6)), (b"ANMF", body))
    plain, control = PLAIN["PNG"], struct.pack(">IIIIIHHBB", 0, 56, 40, 0, 0, 1, 1, 0, 0)
    return plain[:33] + chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(b"fcTL", control) + plain[33:]


def _cut_pixels(plain: bytes) -> bytes:
    """Return a PNG with a text between its pixels."""
    at = plain.index(b"IDAT") - 4
    size = int.from_bytes(plain[at : at + 4])
    pixels, rest = plain[at + 8 : at + 8 + size], plain[at + 12 + size :]
    return plain[:at] + chunk(b"IDAT", pixels) + chunk(b"tEXt", b"a\0" + MARK) + chunk(b"IDAT", MARK) + rest


JPEG, PNG = PLAIN["JPEG"], PLAIN["PNG"]
UNCLEAR = {
    "JPEG with bytes between segments": JPEG[:20] + MARK + JPEG[20:],
    "JPEG with an unknown segment": JPEG[:-2] + segment(0xDC, MARK) + JPEG[-2:],
    "PNG with an unknown needed chunk": PNG[:33] + chunk(b"PRVT", MARK) + PNG[33:],
    "PNG with a wrong checksum": PNG[:33] + chunk(b"tEXt", b"a\0" + MARK)[:-1] + b"?" + PNG[33:],
    "PNG with pixels in two places": _cut_pixels(PNG),
    "PNG without an end": PNG[:-12] + chunk(b"tEXt", b"a\0" + MARK),
    "PNG of one moving frame": _animated("PNG"),
    "WebP of one moving frame": _animated("WEBP"),
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", UNCLEAR)
def test_the_pixels_of_a_file_with_an_unusual_structure_are_sent(name: str, keep: bool) -> None:
    image = load_checked(UNCLEAR[name], None, ImageSettings(keep_metadata=keep)).image
    assert image.sent == "measured pixels (PNG)"
    assert MARK not in image.data
    assert np.array_equal(decoded(image.data), image.pixels)


@pytest.mark.parametrize("name", PLAIN)
def test_a_file_that_is_cut_short_anywhere_is_unclear(name: str) -> None:
    whole = PLAIN[name]
    for size in {*range(0, len(whole), 7), len(whole) - 1}:
        assert not is_clear(whole[:size])


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\xff\xd8", b"RIFF", b"\x89PNG\r\n\x1a\n", b"RIFF\4\0\0\0WEBP"])
def test_another_file_is_unclear(data: bytes) -> None:
    with pytest.raises(UnclearStructure):
        without_metadata(data)


# Where the compressed pixels of a JPEG are damaged, libjpeg's pixels depend on the bytes after its end.
@pytest.mark.parametrize("name", [name for name in MARKED if not name.endswith(("after the end", "further picture"))])
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_refused_or_sent_with_the_measured_pixels(name: str) -> None:
    """Change bytes at random, in the headers, too."""
    given, _ = MARKED[name]
    chance = random.Random(zlib.crc32(name.encode()))
    for _ in range(20):
        data = bytearray(given)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(2, chance.choice([60, len(data)]))
            data[at : at + chance.choice([0, 1, 1])] = bytes(
                chance.randrange(256) for _ in range(chance.choice([0, 1]))
            )
        try:
            image = load(bytes(data))
        except ImageError:
            continue
        assert MARK not in image.data
        assert np.array_equal(decoded(image.data), image.pixels)


def test_a_photo_in_a_file_is_sent_without_metadata(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    given, plain = MARKED["JPEG: EXIF"]
    path.write_bytes(given)
    for source in (path, given, io.BytesIO(given), Image.open(path)):
        assert MARK not in load(source).data
    assert load(load(path).to_dspy()).data == plain
