"""Take the metadata out of a JPEG, PNG or WebP without decoding it: the compressed pixels are copied byte for byte.

The parts that decoders need are listed, and everything else is left out: EXIF, XMP, IPTC, comments, thumbnails, texts,
times, private data, further pictures of a JPEG, and what follows the end of the picture. The color profile is kept. An
orientation is not: ``images.loading`` sends the turned pixels of a file that has one.

Sources: ITU-T T.81 annex B and T.871 (JPEG and JFIF), PNG, third edition, 5.3 and 11.3, RFC 9649 (WebP).
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from agenticiqa.programs.images.png_chunks import ANIMATION, HEADER, SIGNATURE, chunks_of

Parts: TypeAlias = list[bytes | memoryview]

# JPEG: second bytes of markers
SOI, EOI, SOS, APP0, APP2, APP14, COM = 0xD8, 0xD9, 0xDA, 0xE0, 0xE2, 0xEE, 0xFE
TABLES = {0xC4, 0xCC, 0xDB, 0xDD}  # DHT, DAC, DQT, DRI
FRAMES = {*range(0xC0, 0xD0)} - {*TABLES, 0xC8}  # C8 is reserved
NEEDED = {*TABLES, *FRAMES, SOS}
METADATA = {*range(APP0, APP0 + 16), COM}
ICC_PROFILE = b"ICC_PROFILE\0"
JFIF_SIZE, ADOBE_SIZE = 14, 12  # bytes of content that decoders read; a thumbnail may follow those of JFIF
# A marker after compressed pixels, in which FF 00, fill bytes and restart markers occur.
AFTER_PIXELS = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")

# PNG: chunks that change how the pixels are shown, and their largest content in bytes
SHOWN = {b"sRGB": 1, b"gAMA": 4, b"cICP": 4, b"sBIT": 4, b"bKGD": 6, b"pHYs": 9, b"cHRM": 32, b"tRNS": 256}
SHOWN |= {b"iCCP": 2**32}
PALETTE_SIZE = 768  # bytes
END_OF_PNG = b"\0\0\0\0IEND\xaeB`\x82"

# WebP
EXTENDED_SIZE = 10  # bytes of the content of VP8X
HAS_PROFILE, HAS_ALPHA, IS_ANIMATED = 0x20, 0x10, 0x02  # bits of its first byte
BITSTREAMS = {b"VP8 ", b"VP8L"}


class UnclearStructure(ValueError):
    """Raised for a file with a structure in which pixels and metadata cannot be told apart for certain."""


def without_metadata(data: bytes) -> bytes:
    """Return a JPEG, PNG or WebP without its metadata.

    Args:
        data: The file, which a decoder has read without an error.

    Returns:
        The smaller file; ``data`` itself if it has no metadata.

    Raises:
        UnclearStructure: The structure of the file is unusual, or it has another format.
    """
    clean = b"".join(_needed_parts(data))
    return data if clean == data else clean


def is_clear(data: bytes) -> bool:
    """Return whether ``without_metadata`` can take the metadata out of a file."""
    try:
        _needed_parts(data)
    except UnclearStructure:
        return False
    return True


def _needed_parts(data: bytes) -> Parts:
    try:
        for beginning, parts_of in _READERS.items():
            if data.startswith(beginning):
                return parts_of(data)
    except IndexError:
        raise UnclearStructure("the file ends too early") from None
    raise UnclearStructure("neither a JPEG nor a PNG nor a WebP")


def _of_jpeg(data: bytes) -> Parts:
    view, at = memoryview(data), 2
    parts: Parts = [view[:2]]
    while True:
        _require(data[at] == 0xFF, "bytes between two segments")
        while data[at] == 0xFF:  # fill bytes
            at += 1
        code, start = data[at], at + 1
        if code == EOI:
            return [*parts, bytes((0xFF, EOI))]
        at = start + int.from_bytes(view[start : start + 2])
        _require(start + 2 <= at <= len(data), "a segment of an impossible length")
        if code in NEEDED:
            parts += [b"\xff", view[start - 1 : at]]
        elif code in METADATA:
            parts += _shown_of_application(code, data[start + 2 : at])
        else:
            raise UnclearStructure(f"an unknown segment {code:02X}")
        if code == SOS:
            marker = AFTER_PIXELS.search(data, at)
            if marker is None:
                raise UnclearStructure("no end of the pixels")
            parts.append(view[at : marker.start()])
            at = marker.start()


def _shown_of_application(code: int, content: bytes) -> Parts:
    """Return the segment of an application (APPn) or a comment as far as it changes the shown colors."""
    if code == APP0 and content.startswith(b"JFIF\0") and len(content) >= JFIF_SIZE:
        content = content[: JFIF_SIZE - 2] + bytes(2)  # the sides of the thumbnail
    elif code == APP14 and content.startswith(b"Adobe") and len(content) >= ADOBE_SIZE:
        content = content[:ADOBE_SIZE]
    elif not (code == APP2 and content.startswith(ICC_PROFILE)):
        return []
    return [bytes((0xFF, code)), (len(content) + 2).to_bytes(2), content]


def _of_png(data: bytes) -> Parts:
    chunks, view = [*chunks_of(data)], memoryview(data)
    kinds = [chunk.kind for chunk in chunks]
    pixels = [number for number, kind in enumerate(kinds) if kind == b"IDAT"]
    _require(kinds[:1] == [b"IHDR"] and chunks[0].end == HEADER and kinds.count(b"IHDR") == 1, "an unusual header")
    _require(kinds[-1] == b"IEND", "no end")
    _require(bool(pixels) and pixels[-1] - pixels[0] + 1 == len(pixels), "pixels in several places")
    _require(ANIMATION.isdisjoint(kinds), "an animation")
    parts: Parts = [SIGNATURE]
    for chunk in chunks[:-1]:
        size = chunk.end - chunk.start - 12
        if chunk.is_side:
            is_needed = size <= SHOWN.get(chunk.kind, -1)
        else:
            is_needed = chunk.kind in (b"IHDR", b"IDAT") or (chunk.kind == b"PLTE" and size <= PALETTE_SIZE)
            _require(is_needed, f"an unknown chunk {chunk.kind!r}")
        if is_needed:
            parts.append(view[chunk.start : chunk.end])
    return [*parts, END_OF_PNG]


def _of_webp(data: bytes) -> Parts:
    chunks = [*_riff_chunks(data)]
    number = next((number for number, (kind, _) in enumerate(chunks) if kind in BITSTREAMS), len(chunks))
    before, pixels = chunks[:number], chunks[number]
    if not before:
        return _as_webp([pixels])
    (first, extended), names = before[0], [kind for kind, _ in before]
    _require(first == b"VP8X" and len(extended) == EXTENDED_SIZE, "an unusual header")
    _require(not extended[0] & IS_ANIMATED, "an animation")
    _require(all(names.count(kind) <= 1 for kind in (b"VP8X", b"ICCP", b"ALPH")), "a chunk that occurs twice")
    profile = [chunk for chunk in before if chunk[0] == b"ICCP" and extended[0] & HAS_PROFILE]
    alpha = [chunk for chunk in before if chunk[0] == b"ALPH"]
    flags = extended[0] & HAS_ALPHA | (HAS_PROFILE if profile else 0)
    header = (b"VP8X", bytes((flags, 0, 0, 0)) + bytes(extended[4:]))
    return _as_webp([header, *profile, *alpha, pixels])


def _riff_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kind and content of the chunks of a WebP."""
    at, end = 12, 8 + int.from_bytes(data[4:8], "little")
    _require(data[8:12] == b"WEBP" and end <= len(data), "an unusual beginning")
    while at < end:
        kind, start, size = data[at : at + 4], at + 8, int.from_bytes(data[at + 4 : at + 8], "little")
        at = start + size + size % 2
        _require(start + size <= end, "a chunk of an impossible length")
        _require(not any(data[start + size : at]), "padding that is not zero")  # libwebp reads it
        yield kind, memoryview(data)[start : start + size]


def _as_webp(chunks: list[tuple[bytes, bytes | memoryview]]) -> Parts:
    parts: Parts = []
    for kind, content in chunks:
        parts += [kind, len(content).to_bytes(4, "little"), content, bytes(len(content) % 2)]
    return [b"RIFF", (4 + sum(map(len, parts))).to_bytes(4, "little"), b"WEBP", *parts]


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise UnclearStructure(problem)


_READERS: dict[bytes, Callable[[bytes], Parts]] = {
    bytes((0xFF, SOI)): _of_jpeg,
    SIGNATURE: _of_png,
    b"RIFF": _of_webp,
}
