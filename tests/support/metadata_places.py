"""Files with a text in every place where a JPEG, PNG or WebP can have metadata."""

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageCms
from PIL.ExifTags import IFD
from PIL.ExifTags import Base as ExifTag

from support.odd_colors import encoded

MARK = b"48.1372 N 11.5755 E"
Pixels = np.ndarray[Any, Any]
Change = Callable[[bytes], bytes]


def exif(orientation: int | None = None) -> bytes:
    """Return EXIF data with the text, a GPS position and a thumbnail, beginning with ``Exif``."""
    tags = Image.Exif()
    tags[ExifTag.ImageDescription] = MARK.decode()
    tags.get_ifd(IFD.GPSInfo).update({1: "N", 2: (48.0, 8.0, 13.9), 29: MARK.decode()})
    if orientation is not None:
        tags[ExifTag.Orientation] = orientation
    return tags.tobytes()


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">%s</x:xmpmeta>' % MARK
JFIF = b"JFIF\0\1\1\0\0\1\0\1"
ADOBE = b"Adobe\0d\0\0\0\0\1"  # YCbCr
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def segment(code: int, content: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return bytes([0xFF, code]) + struct.pack(">H", len(content) + 2) + content


def _behind(at: int, *segments: bytes) -> Change:
    return lambda data: data[:at] + b"".join(segments) + data[at:]


def _between_scans(data: bytes) -> bytes:
    at = data.rindex(b"\xff\xda")
    return data[:at] + segment(0xFE, MARK) + segment(0xE1, XMP) + data[at:]


IN_JPEG: dict[str, Change] = {
    "EXIF": _behind(2, segment(0xE1, exif())),
    "EXIF of an upright photo": _behind(2, segment(0xE1, exif(1))),
    "EXIF twice": _behind(2, segment(0xE1, exif()), segment(0xE1, exif())),
    "XMP": _behind(2, segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)),
    "extended XMP": _behind(2, segment(0xE1, b"http://ns.adobe.com/xmp/extension/\0" + MARK)),
    "IPTC": _behind(2, segment(0xED, b"Photoshop 3.0\x008BIM\4\4\0\0" + struct.pack(">I", len(MARK)) + MARK)),
    "FlashPix": _behind(2, segment(0xE2, b"FPXR\0" + MARK)),
    "thumbnail of JFXX": _behind(2, segment(0xE0, b"JFXX\0\x10" + MARK)),
    "comment": _behind(2, segment(0xFE, MARK)),
    "other applications": _behind(2, *(segment(code, MARK) for code in (*range(0xE0, 0xEE), 0xEE, 0xEF))),
    "fill bytes and a comment": _behind(2, b"\xff\xff\xff", segment(0xFE, MARK)),
    "between scans": _between_scans,
    "after the end": lambda data: data + MARK,
    "a further picture": lambda data: data + data[:2] + segment(0xFE, MARK) + data[2:],
}


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


BEFORE_IEND = -12  # bytes


IN_PNG: dict[str, Change] = {
    **{
        kind.decode(): _behind(33, chunk(kind, content))
        for kind, content in {
            b"tEXt": b"Comment\0" + MARK,
            b"zTXt": b"Comment\0\0" + zlib.compress(MARK),
            b"iTXt": b"XML:com.adobe.xmp\0\0\0\0\0" + XMP,
            b"eXIf": exif()[6:],
            b"tIME": bytes([7, 230, 1, 1, 1, 1, 1]) + MARK,
            b"sPLT": MARK + b"\0\x08" + bytes(6),
            b"hIST": MARK + b"\0",
            b"prVt": MARK,
            b"caBX": MARK,
            b"pHYs": bytes(9) + MARK,
            b"gAMA": struct.pack(">I", 45455) + MARK,
        }.items()
    },
    "EXIF of ImageMagick": _behind(33, chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 9\n" + MARK.hex().encode())),
    "after the pixels": _behind(BEFORE_IEND, chunk(b"tEXt", b"Comment\0" + MARK)),
    "in the end": lambda data: data[:BEFORE_IEND] + chunk(b"IEND", MARK),
    "after the end": lambda data: data + MARK,
}


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a WebP of these chunks."""
    body = b"".join(k + struct.pack("<I", len(c)) + c + bytes(len(c) % 2) for k, c in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def riff_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return kind and content of the chunks of a WebP."""
    found, at = [], 12
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 4)[0]
        found.append((data[at : at + 4], data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return found


def _extended(before: list[tuple[bytes, bytes]], after: list[tuple[bytes, bytes]], flags: int) -> Change:
    """Return a function that adds chunks before and after the pixels of a WebP, which gets a header VP8X for them."""

    def change(data: bytes) -> bytes:
        chunks = riff_chunks(data)
        if chunks[0][0] != b"VP8X":
            width, height = Image.open(io.BytesIO(data)).size
            sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            chunks = [(b"VP8X", bytes(4) + sides), *chunks]
        (kind, header), *rest = chunks
        return riff((kind, bytes([header[0] | flags]) + header[1:]), *before, *rest, *after)

    return change


IN_WEBP: dict[str, Change] = {
    "EXIF and XMP": _extended([], [(b"EXIF", exif()), (b"XMP ", XMP)], 0x0C),
    "EXIF of an upright photo": _extended([], [(b"EXIF", exif(1))], 0x08),
    "undeclared": _extended([], [(b"EXIF", exif()), (b"XMP ", XMP)], 0),
    "unknown": _extended([(b"abcd", MARK)], [(b"efgh", MARK)], 0),
    "after the end": lambda data: data + MARK,
    "without a header": lambda data: riff(*riff_chunks(data), (b"EXIF", exif())),
}
PLACES = {"JPEG": IN_JPEG, "PNG": IN_PNG, "WEBP": IN_WEBP}


def plain_files(pixels: Pixels) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, format of Pillow, and content of files without metadata."""
    gray = np.ascontiguousarray(pixels[..., 1])
    yield "JPEG", "JPEG", encoded(pixels, "JPEG", quality=85)
    yield "progressive JPEG", "JPEG", encoded(pixels, "JPEG", progressive=True, subsampling=0)
    yield "JPEG with restart markers", "JPEG", encoded(pixels, "JPEG", restart_marker_blocks=3)
    yield "gray JPEG", "JPEG", encoded(gray, "JPEG", optimize=True)
    yield "JPEG in RGB", "JPEG", encoded(pixels, "JPEG", keep_rgb=True)
    yield "JPEG of sRGB", "JPEG", encoded(pixels, "JPEG", icc_profile=SRGB)
    whole = encoded(pixels, "JPEG")
    yield "JPEG without JFIF", "JPEG", whole[:2] + whole[20:]
    yield "Adobe JPEG", "JPEG", whole[:2] + segment(0xEE, ADOBE) + whole[20:]
    yield "PNG", "PNG", encoded(pixels, "PNG")
    yield "gray PNG", "PNG", encoded(gray, "PNG")
    yield "palette PNG", "PNG", encoded(Image.fromarray(pixels).quantize(16), "PNG")
    yield "PNG of sRGB", "PNG", encoded(pixels, "PNG", icc_profile=SRGB, dpi=(72, 72))
    yield "opaque RGBA PNG", "PNG", encoded(np.dstack([pixels, np.full_like(gray, 255)]), "PNG")
    yield "WebP", "WEBP", encoded(pixels, "WEBP", quality=80)
    yield "lossless WebP", "WEBP", encoded(pixels, "WEBP", lossless=True)
    yield "WebP of sRGB", "WEBP", encoded(pixels, "WEBP", icc_profile=SRGB)


def marked_files(pixels: Pixels) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield name, content and content without metadata of every plain file with metadata in every place."""
    for name, kind, plain in plain_files(pixels):
        for place, change in PLACES[kind].items():
            yield f"{name}: {place}", change(plain), plain
