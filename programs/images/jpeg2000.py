"""Read the boxes of JPEG 2000 and AVIF headers, and refuse JPEG 2000 files that Pillow misreads.

Source: ITU-T T.800 (2002), annex I.5.3: the boxes pclr (palette) and cdef (channel definition).
"""

import struct
from collections.abc import Iterator

SUPERBOX, COLOR, ALPHA = b"jp2h", 0, 1


def refuse_misread(data: bytes) -> None:
    """Raise NotImplementedError for a palette, and for channels in another order than red, green, blue, alpha."""
    boxes = dict(read_boxes(dict(read_boxes(data)).get(SUPERBOX, b"")))
    if b"pclr" in boxes:
        raise NotImplementedError("a palette in a JPEG 2000 file")
    for channel, kind, color in struct.iter_unpack(">HHH", boxes.get(b"cdef", b"")[2:]):
        if (kind, color) != ((COLOR, channel + 1) if kind == COLOR else (ALPHA, 0)):
            raise NotImplementedError("channels with another order or meaning than Pillow assumes")


def read_boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and content of the boxes of a file or a superbox, in reverse: in a dict, the first of a type wins."""
    boxes, at = [], 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        start = at + 8
        if size == 1 and at + 16 <= len(data):
            size, start = struct.unpack_from(">Q", data, start)[0], at + 16
        end = len(data) if size == 0 else at + size
        if end < start:
            break
        if kind != b"jp2c":
            boxes.append((kind, data[start:end]))
        at = end
    yield from reversed(boxes)
