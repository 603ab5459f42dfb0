"""Check the chunks of a PNG, and remove side chunks that Pillow refuses, because the picture does not need them.

Side chunks are those that decoders may skip ("ancillary", PNG, third edition, 5.4), such as texts and color profiles.
One with a wrong checksum is ignored, as libpng does by default; in any other chunk that is an error.
"""

import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_CHUNKS = 1_000_000  # chunks in a file
MOST_TESTED = 1_000  # side chunks that are tested one by one
MOST_UNPACKED = 2**24  # bytes of a color profile or of EXIF data
MOST_NAMED = 5  # kinds of chunks in a note
ANIMATION = {b"acTL", b"fcTL", b"fdAT"}
TEXTS = {b"tEXt", b"zTXt", b"iTXt"}
EXIF, XMP = b"Raw profile type exif", b"XML:com.adobe.xmp"  # keywords of texts; ImageMagick writes the first
INFO_OF = {(b"iCCP", b""): "icc_profile", (b"zTXt", EXIF): EXIF.decode()}  # keys of Pillow's info


class Chunk(NamedTuple):
    """A chunk and its place in the file, from its length to its checksum."""

    kind: bytes
    start: int
    end: int

    @property
    def is_side(self) -> bool:
        """Whether a decoder may skip it."""
        return bool(self.kind[0] & 0x20)


class Mended(NamedTuple):
    """A PNG that Pillow opens, further entries for the ``info`` of its image, and notes."""

    data: bytes
    info: dict[str | tuple[int, int], Any]
    notes: Sequence[str]


class WrongChecksum(Exception):
    """Raised for a wrong checksum of a chunk that the picture needs."""


def mended(data: bytes) -> Mended | None:
    """Return a PNG without its damaged side chunks and those that Pillow refuses; ``None`` if there are none.

    A color profile and EXIF data that Pillow refuses for their size are in ``info``. Raises WrongChecksum, and
    ValueError for a file of too many chunks.
    """
    chunks = [*_chunks(data)]
    view = memoryview(data)
    wrong = [c for c in chunks if zlib.crc32(view[c.start + 4 : c.end - 4]) != int.from_bytes(view[c.end - 4 : c.end])]
    for chunk in wrong:
        if not chunk.is_side and chunk.kind != b"IEND":
            raise WrongChecksum(f"the checksum of its chunk {_names([chunk])} is wrong")
    wrong = [chunk for chunk in wrong if chunk.is_side]
    intact = [chunk for chunk in chunks if chunk.is_side and chunk.kind not in ANIMATION and chunk not in wrong]
    if not wrong and (not intact or _is_read(data, intact)):
        return None
    refused = [chunk for chunk in intact[:MOST_TESTED] if not _is_read(data, [chunk])] + intact[MOST_TESTED:]
    unused = [c for c in intact if c.kind in TEXTS and not data.startswith((EXIF, XMP), c.start + 8)]
    info: dict[str | tuple[int, int], Any] = {key: value for chunk in refused for key, value in _unpacked(data, chunk)}
    notes = []
    if wrong:
        notes.append(f"The PNG has a wrong checksum in {_names(wrong)}, which was ignored.")
    if lost := [chunk for chunk in refused if chunk.kind != b"iCCP"]:
        notes.append(f"The PNG has unreadable or very large metadata in {_names(lost)}, which was ignored.")
    parts, at = [], 0
    for chunk in sorted({*wrong, *refused, *unused}, key=lambda chunk: chunk.start):
        parts.append(view[at : chunk.start])
        at = chunk.end
    return Mended(b"".join([*parts, view[at:]]), info, notes)


def _chunks(data: bytes) -> Iterator[Chunk]:
    """Yield the complete chunks of a PNG up to IEND."""
    at, kind, count = len(SIGNATURE), b"", 0
    while at + 12 <= len(data) and kind != b"IEND":
        size, kind = struct.unpack_from(">I4s", data, at)
        count += 1
        if count > MOST_CHUNKS:
            raise ValueError(f"it has more than {MOST_CHUNKS} chunks")
        if at + 12 + size <= len(data):
            yield Chunk(kind, at, at + 12 + size)
        at += 12 + size


def _is_read(data: bytes, chunks: Iterable[Chunk]) -> bool:
    """Return whether Pillow opens a file of one pixel with these chunks and the pixel format of ``data``."""
    header = b"IHDR" + struct.pack(">II", 1, 1) + data[24:29]
    start = SIGNATURE + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    middle = b"".join(data[chunk.start : chunk.end] for chunk in chunks)
    try:
        Image.open(io.BytesIO(start + middle + b"\0\0\0\0IDAT"), formats=["PNG"])
    except Exception:  # Pillow raises almost anything on damaged chunks
        return False
    return True


def _unpacked(data: bytes, chunk: Chunk) -> Iterator[tuple[str, Any]]:
    """Yield the entry of a color profile or of EXIF data, as far as it can be unpacked."""
    keyword, _, packed = data[chunk.start + 8 : chunk.end - 4].partition(b"\0")
    key = INFO_OF.get((chunk.kind, keyword if chunk.kind in TEXTS else b""))
    if key is None:
        return
    try:
        content = zlib.decompressobj().decompress(packed[1:], MOST_UNPACKED)
    except zlib.error:
        return
    yield key, content if chunk.kind == b"iCCP" else content.decode("latin-1")


def _names(chunks: Iterable[Chunk]) -> str:
    kinds = dict.fromkeys(chunk.kind.decode("latin-1") for chunk in chunks)
    return ", ".join(list(kinds)[:MOST_NAMED])
