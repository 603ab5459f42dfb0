"""Find the full-resolution picture in a file that begins with a thumbnail: TIFF, raw photos, HEIC.

The tags NewSubfileType (254), SubfileType (255) and SubIFDs (330) of TIFF 6.0 and TIFF/EP mark reduced pictures.
A first picture without these tags counts as a thumbnail if a later one has its shape and at least twice its sides.
"""

import io
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from PIL import Image, UnidentifiedImageError
from PIL.TiffImagePlugin import ImageFileDirectory_v2

SUB_IFDS = 330
REDUCED, IS_MASK = 1, 4  # bits of NewSubfileType
TWICE, SAME_SHAPE = 2.0, 0.02  # least ratio of the sides to a thumbnail's, largest difference of both ratios
MAY_BEGIN_SMALL = {"TIFF", "HEIF"}
MOST_PAGES = 1000  # pages that are examined
CONVERTER = "convert it to a JPEG or a TIFF first, with RawTherapee, darktable-cli or libraw's dcraw_emu -T"


class Picture(NamedTuple):
    """A picture in a file: the offset of its directory (its number in a HEIC), its sides, and whether it is reduced."""

    place: int
    width: int
    height: int
    is_reduced: bool = False

    @property
    def size(self) -> str:
        """The sides as text, such as ``640x480``."""
        return f"{self.width}x{self.height}"

    def is_thumbnail_of(self, other: "Picture") -> bool:
        """Return whether the other one has its shape and at least twice its sides."""
        across, down = other.width / max(self.width, 1), other.height / max(self.height, 1)
        return min(across, down) >= TWICE and abs(across / down - 1) <= SAME_SHAPE


class NotDecoded(Exception):
    """Raised when Pillow cannot decode the full-resolution picture, or the file lacks it."""


def main_picture(image: Image.Image, data: bytes, reopened: Callable[[bytes], Image.Image]) -> tuple[Image.Image, str]:
    """Return the full-resolution picture of an opened file, and a note if it is not the first one.

    ``reopened`` opens a file of these bytes. Raises NotDecoded if Pillow can decode only a thumbnail.
    """
    if image.format == "TIFF":
        chain, beside = _of_tiff(data)
    elif image.format == "HEIF" and getattr(image, "n_frames", 1) > 1:
        chain, beside = _of_heif(image), []
    else:
        return image, ""
    if not chain:
        return image, ""
    first = chain[0]
    whole = [page for page in (*chain[1:], *beside) if not page.is_reduced and page.width and page.height]
    if not first.is_reduced:
        larger = [page for page in beside if page in whole and page.width * page.height > first.width * first.height]
        whole = larger or [page for page in whole if first.is_thumbnail_of(page)]
        if not whole:
            return image, ""
    elif not whole:
        raise NotDecoded(f"only a reduced copy ({first.size})")
    main = max(whole, key=lambda page: page.width * page.height)
    note = f"The first picture in the file ({first.size}) is a thumbnail; the full one ({main.size}) was measured."
    if image.format == "HEIF":
        image.seek(main.place)
        return image, note
    try:
        return reopened(_beginning_at(data, main.place)), note
    except (UnidentifiedImageError, NotImplementedError, OSError, ValueError) as error:
        photo = f"a raw photo ({main.size}) that Pillow cannot decode"
        raise NotDecoded(f"a thumbnail ({first.size}) of {photo}") from error


def _of_heif(image: Image.Image) -> list[Picture]:
    """Return the pictures of a HEIC or HEIF file, the primary one first."""
    primary = image.tell()
    pictures = []
    for number in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(number)
        pictures.append(Picture(number, *image.size))
    image.seek(primary)
    return [pictures[primary], *pictures[:primary], *pictures[primary + 1 :]]


def _of_tiff(data: bytes) -> tuple[list[Picture], list[Picture]]:
    """Return the pages of a TIFF in their order, and their attached pictures (SubIFDs)."""
    chain, beside = list[Picture](), list[Picture]()
    for page, inner in _directories(data):
        chain.append(page)
        beside += [page for place in inner for page, _ in _directories(data, place)]
    return chain, beside


def _directories(data: bytes, start: int | None = None) -> Iterator[tuple[Picture, tuple[int, ...]]]:
    """Yield the pictures of a chain of directories, by default the first, each with the offsets of its SubIFDs."""
    header, file = data[: 16 if b"\x2b" in data[2:4] else 8], io.BytesIO(data)
    offset, seen = start or ImageFileDirectory_v2(header).next, set[int]()
    while 0 < offset < len(data) and offset not in seen and len(seen) < MOST_PAGES:
        seen.add(offset)
        tags = ImageFileDirectory_v2(header)
        file.seek(offset)
        tags.load(file)
        is_reduced = bool(tags.get(254, 0) & (REDUCED | IS_MASK)) or tags.get(255) == 2
        yield Picture(offset, tags.get(256, 0), tags.get(257, 0), is_reduced), tags.get(SUB_IFDS, ())
        offset = tags.next


def _beginning_at(data: bytes, offset: int) -> bytes:
    """Return the file with another first directory."""
    order = "<" if data[:2] == b"II" else ">"
    if b"\x2b" in data[2:4]:
        return data[:8] + struct.pack(f"{order}Q", offset) + data[16:]
    return data[:4] + struct.pack(f"{order}I", offset) + data[8:]
