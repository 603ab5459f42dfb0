"""Read JPEG 2000 headers where Pillow does not: repeated colors of the palette, and the meanings of channels.

Source: ITU-T T.800 (2002), annex I.5.3: the boxes pclr (palette), cmap (component mapping), cdef (channel definition).
"""

import struct
from collections.abc import Iterator

from PIL import ImagePalette

SUPERBOX, COLOR, ALPHA = b"jp2h", 0, 1
SRGB = 16


def palette_of(data: bytes) -> ImagePalette.ImagePalette | None:
    """Return the palette for samples as Pillow returns them, RGB or RGBA; ``None`` for a file without one.

    Raises NotImplementedError for a palette of other than 8-bit sRGB colors, with or without alpha, and for a file
    without a palette if its channels are not in the order red, green, blue, alpha.
    """
    boxes = dict(read_boxes(dict(read_boxes(data)).get(SUPERBOX, b"")))
    if b"pclr" not in boxes:
        for channel, kind, color in struct.iter_unpack(">HHH", boxes.get(b"cdef", b"")[2:]):
            if (kind, color) != ((COLOR, channel + 1) if kind == COLOR else (ALPHA, 0)):
                raise NotImplementedError("channels with another order or meaning than Pillow assumes")
        return None
    colors, depth = _colors(boxes[b"pclr"]), (boxes[b"ihdr"][10] & 0x7F) + 1
    if boxes.get(b"colr", b"")[:1] == b"\1" and boxes[b"colr"][3:7] != struct.pack(">I", SRGB):
        raise NotImplementedError("a palette in another color space than sRGB")
    if depth > 8 or len(colors) > 2**depth:
        raise NotImplementedError(f"a palette of {len(colors)} colors for {depth} bits")
    channels = _channels(boxes, len(colors[0]))
    if len(channels) not in (3, 4):
        raise NotImplementedError(f"a palette with {len(channels)} channels")
    table = bytearray(256 * len(channels))
    for index, color in enumerate(colors):
        at = (index << (8 - depth)) * len(channels)  # samples of fewer bits come shifted up to 8
        table[at : at + len(channels)] = bytes(color[column] for column in channels)
    found = ImagePalette.ImagePalette("RGBA" if len(channels) == 4 else "RGB", table)
    found.dirty = 1
    return found


def _channels(boxes: dict[bytes, bytes], columns: int) -> list[int]:
    """Return the column of the palette for red, green, blue and, if it has that, alpha."""
    mapped = [*struct.iter_unpack(">HBB", boxes.get(b"cmap", b""))] or [(0, 1, column) for column in range(columns)]
    of_palette = {channel: column for channel, (component, kind, column) in enumerate(mapped) if kind == 1}
    if any(component for component, kind, _ in mapped if kind == 1):
        raise NotImplementedError("a palette with several components")
    if b"cdef" not in boxes:
        return [*of_palette.values()]
    places = {}
    for channel, kind, color in struct.iter_unpack(">HHH", boxes[b"cdef"][2:]):
        if channel in of_palette:
            places[{COLOR: color - 1, ALPHA: 3}.get(kind, -1)] = of_palette[channel]
    if sorted(places) != [*range(len(of_palette))] or len(places) != len(of_palette):
        raise NotImplementedError("channels with unknown meaning")
    return [places[place] for place in sorted(places)]


def _colors(box: bytes) -> list[bytes]:
    count, columns = struct.unpack_from(">HB", box)
    depths, start = box[3 : 3 + columns], 3 + columns
    if not columns or any(depth != 7 for depth in depths) or len(box) < start + count * columns:
        raise NotImplementedError("a palette with a depth other than 8 bits")
    return [box[at : at + columns] for at in range(start, start + count * columns, columns)]


def read_boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and content of the boxes of a file or a superbox, in reverse: in a dict, the first of a type wins."""
    found, at = [], 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        start = at + 8
        if size == 1 and at + 16 <= len(data):
            size, start = struct.unpack_from(">Q", data, start)[0], at + 16
        end = len(data) if size == 0 else at + size
        if end < start:
            break
        if kind != b"jp2c":
            found.append((kind, data[start:end]))
        at = end
    yield from reversed(found)
