"""Mark the pictures that this program writes, and recognize them and its results, so that none is assessed."""

import io
import os
from contextlib import suppress
from pathlib import Path

from PIL import Image
from PIL.ExifTags import Base as ExifTag

MADE_BY = "AgenticIQA"  # the Software entry of a PNG's text and of the Exif of other formats
SUFFIXES = (".png", ".webp", ".jpg", ".jpeg")
QUALITY = 70  # quality of WebP, 0 to 100
RUN = "run.json"  # the settings of a run whose results are in shards
SHARDS = "shard-*.parquet"
STAMP = b"agenticiqa.shard"  # the key in the footer of a shard's file
SEARCHED = 512  # bytes at each end of a file: Pillow writes a PNG's text and a JPEG's Exif first, a WebP's Exif last


def webp(picture: Image.Image, method: int = 4) -> bytes:
    """Encode a small picture for a page, marked as written by this program; ``method`` is WebP's, 0 (fast) to 6."""
    return encode(picture, "WEBP", QUALITY, method)


def narrowed(file: Path, width: int) -> bytes:
    """Return a picture that this program drew as a WebP of at most this width."""
    with Image.open(file) as picture:
        picture.thumbnail((width, picture.height))
        return webp(picture)


def encode(
    picture: Image.Image, file_format: str, quality: int = 90, method: int = 4, *, lossless: bool = False
) -> bytes:
    """Encode a picture without alpha in a format of Pillow, marked by its Exif if the format has it.

    ``quality`` applies to JPEG, WebP and AVIF, ``method`` and ``lossless`` to WebP. Raises OSError, KeyError or
    ValueError if Pillow cannot write the format.
    """
    exif = Image.Exif()
    exif[ExifTag.Software] = MADE_BY
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, file_format, quality=quality, method=method, lossless=lossless, exif=exif)
    return buffer.getvalue()


def is_own(path: Path, image: str = "") -> bool:
    """Return whether this program wrote a picture; with ``image``, whether its text entry ``Image`` equals it.

    Only the first and the last bytes are read.
    """
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(SEARCHED)
            file.seek(-min(SEARCHED, file.seek(0, os.SEEK_END)), os.SEEK_END)
            tail = file.read()
    except OSError:
        return False
    if head.startswith(b"RIFF"):
        return not image and MADE_BY.encode() in tail
    if head.startswith(b"\xff\xd8"):
        return not image and f"\0{MADE_BY}\0".encode() in head
    return f"tEXtSoftware\0{MADE_BY}".encode() in head and (not image or f"tEXtImage\0{image}".encode() in head)


def run_folder(place: str) -> str:
    """Return the folder of the files that describe a run, beside its shards: Polars reads a folder of Parquet alone."""
    return f"{place}.run"


def is_shard_folder(place: str | Path) -> bool:
    """Return whether this is a folder of shards, by the footer of the first one; an address counts as one."""
    if "://" in str(place):
        return True
    first = min(Path(place).glob(SHARDS), default=None) if os.path.isdir(place) else None
    return first is not None and STAMP in _footer(first)


def _footer(file: Path) -> bytes:
    """Return the footer of a Parquet file; nothing if it cannot be read."""
    with suppress(OSError), file.open("rb") as opened:
        end = opened.seek(-8, os.SEEK_END)  # the size of the footer, and PAR1
        size = int.from_bytes(opened.read(4), "little")
        opened.seek(max(end - size, 0))
        return opened.read(size)
    return b""
