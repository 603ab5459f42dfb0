"""Open a PNG without side chunks that are damaged or that Pillow refuses, because the picture does not need them.

Side chunks are those that decoders may skip ("ancillary", PNG, third edition, 5.4), such as texts and color profiles.
One with a wrong checksum is ignored, as libpng does by default; in any other chunk that is an error.
"""

import io
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from PIL import Image, PngImagePlugin

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = 33  # bytes of the signature and the chunk IHDR
MOST_CHUNKS = 250_000  # chunks in a file
MOST_UNPACKED = 2**24  # bytes of a color profile or a text
MOST_NAMED = 5  # kinds of chunks in a note
ANIMATION = {b"acTL", b"fcTL", b"fdAT"}
TEXTS = {b"tEXt", b"zTXt", b"iTXt"}
READ = {b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"pHYs", b"eXIf", *TEXTS}  # side chunks that Pillow examines
KEYWORDS = (b"Raw profile type exif\0", b"XML:com.adobe.xmp\0")  # texts about the orientation
MENDED_KEY = "opened without some of its chunks"  # notes, in the info of an image


class Chunk(NamedTuple):
    """A chunk and its place in the file, from its length to its checksum."""

    kind: bytes
    start: int
    end: int

    @property
    def is_side(self) -> bool:
        """Whether the picture does not need it."""
        return bool(self.kind[0] & 0x20) and self.kind not in ANIMATION


def open_png(data: bytes) -> Image.Image:
    """Open a PNG with the side chunks that can be read; if others were left out, ``MENDED_KEY`` of its info has notes.

    It changes a setting of Pillow meanwhile, so the caller holds a lock. Raises ValueError for a wrong checksum of
    another chunk, and what Pillow raises.
    """
    chunks = [*islice(chunks_of(data), MOST_CHUNKS)]
    if len(chunks) == MOST_CHUNKS:
        raise ValueError(f"it has {MOST_CHUNKS} chunks or more")
    view = memoryview(data)
    wrong = [c for c in chunks if zlib.crc32(view[c.start + 4 : c.end - 4]) != int.from_bytes(view[c.end - 4 : c.end])]
    for chunk in wrong:
        if not chunk.is_side and chunk.kind != b"IEND":
            raise ValueError(f"wrong checksum in {_names([chunk.kind])}")
    ignored = {chunk for chunk in wrong if chunk.is_side}
    side = [chunk for chunk in chunks if chunk.is_side and chunk not in ignored]
    if not ignored and _is_read(data, side):
        return Image.open(io.BytesIO(data))
    used = [c for c in side if c.kind not in TEXTS or data.startswith(KEYWORDS, c.start + 8)]
    limit = PngImagePlugin.MAX_TEXT_CHUNK
    PngImagePlugin.MAX_TEXT_CHUNK = max(limit, MOST_UNPACKED)
    try:
        refused = [kind for kind in READ if not _is_read(data, [chunk for chunk in used if chunk.kind == kind])]
        kept = [chunk for chunk in used if chunk.kind not in refused]
        others = [chunk for chunk in chunks if not chunk.is_side and chunk.start >= HEADER]
        parts = [view[chunk.start : chunk.end] for chunk in (*kept, *others)]
        image = Image.open(io.BytesIO(b"".join([view[:HEADER], *parts])))
    finally:
        PngImagePlugin.MAX_TEXT_CHUNK = limit
    notes = image.info[MENDED_KEY] = []
    if ignored:
        notes.append(f"The PNG has a wrong checksum in {_names(c.kind for c in ignored)}, which was ignored.")
    if refused:
        notes.append(f"The PNG has unreadable or very large metadata in {_names(refused)}, which was ignored.")
    return image


def chunks_of(data: bytes) -> Iterator[Chunk]:
    """Yield the complete chunks of a PNG up to IEND."""
    at, kind = len(SIGNATURE), b""
    while at + 12 <= len(data) and kind != b"IEND":
        size, kind = struct.unpack_from(">I4s", data, at)
        if at + 12 + size <= len(data):
            yield Chunk(kind, at, at + 12 + size)
        at += 12 + size


def _is_read(data: bytes, chunks: Iterable[Chunk]) -> bool:
    """Return whether Pillow opens a file with the header of ``data`` and these chunks."""
    middle = b"".join(data[chunk.start : chunk.end] for chunk in chunks)
    try:
        Image.open(io.BytesIO(data[:HEADER] + middle + b"\0\0\0\0IDAT"), formats=["PNG"])
    except Exception:  # Pillow raises almost anything on damaged chunks
        return False
    return True


def _names(kinds: Iterable[bytes]) -> str:
    return ", ".join(sorted({kind.decode("latin-1") for kind in kinds})[:MOST_NAMED])
