"""Write small WebP copies of images into a folder beside a page, and reuse copies of earlier pages."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.images.loading import load_pixels
from agenticiqa.programs.images.own import webp

SIDE = 400  # pixels of the longer side: sharp at the 224 pixels of a card on most displays
NAME_DIGITS = 12  # hex digits of the SHA-256; a page with a million images has a name twice in 1 of 500 cases
_DIGITS = re.compile(f"[0-9a-f]{{{NAME_DIGITS}}}")


class ThumbnailRequest(NamedTuple):
    """An image that a page shows: its source, and the SHA-256 of its bytes in hex."""

    source: ImageSource
    sha256: str


def folder_beside(page: Path) -> Path:
    """Return the folder for the images of a page: ``sheet_files`` for ``sheet.html``."""
    return page.with_name(f"{page.stem}_files")


def stem_of(sha256: str) -> str:
    """Return the common prefix of an image's file names: the first digits of its SHA-256, or of the text's own hash."""
    if sha256 and not _DIGITS.match(sha256):
        sha256 = hashlib.sha256(sha256.encode(errors="surrogatepass")).hexdigest()
    return sha256[:NAME_DIGITS]


def write_thumbnails(
    images: Sequence[ThumbnailRequest], folder: Path, *, side: int = SIDE, workers: int = 1
) -> Iterator[str | None]:
    """Write the thumbnails that ``folder`` does not have, and yield the file name of each image in order.

    The name is ``None`` if the image can no longer be read. The longer side has at most ``side`` pixels. Raises OSError
    if a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(workers) as pool:  # Pillow decodes and encodes without Python's lock
        yield from pool.map(partial(_write, folder, side), images)


def thumbnail(source: ImageSource, side: int = SIDE) -> bytes:
    """Return a WebP of an image, upright, at most ``side`` pixels wide and high. Raises ImageError like ``load``."""
    small = Image.fromarray(load_pixels(source, draft_side=side))
    small.thumbnail((side, side), Image.Resampling.HAMMING)  # bicubic is no sharper when reducing, and takes longer
    return webp(small, method=1)


def _write(folder: Path, side: int, image: ThumbnailRequest) -> str | None:
    name = f"{stem_of(image.sha256)}.webp"
    if not (folder / name).exists():
        try:
            write_atomically(folder / name, thumbnail(image.source, side))
        except AgenticIQAError:  # the file moved or changed since its assessment, or its address is unreachable
            return None
    return name
