"""Write images embedded in a table once, byte by byte, to a cache folder, named by their digest."""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images.decoding import open_bytes
from agenticiqa.programs.images.files import HEX_DIGITS, cache_folder, write_atomically

SUFFIXES = {"jpeg": ".jpg", "mpo": ".jpg", "tiff": ".tif"}  # other formats use their own name


def file_of(cell: Any, where: str) -> tuple[str, str]:
    """Return the path of a cell's image, and its name: the path itself, or the path stored with embedded bytes, if any.

    Bytes that are not an image are written, too: that image fails when it is assessed, as a damaged file does. Raises
    UserError, beginning with ``where``, for other cells.
    """
    data, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if data is None or isinstance(data, str):
        path = (data or name or "").strip()
        return path, path
    if not isinstance(data, bytes):
        raise UserError(f"{where}: expected the path or the bytes of an image, found a {type(data).__name__}")
    return str(_written(data)), Path(name).name if name else ""


def shown_path(label: LabeledImage) -> str:
    """Return the path of an image for messages; for an embedded one, its name, because its table has no path."""
    return label.name if label.image.parent == _folder() else str(label.image)


def _folder() -> Path:
    return cache_folder() / "images"


def _written(data: bytes) -> Path:
    digest, suffix = hashlib.sha256(data).hexdigest()[: 2 * HEX_DIGITS], ""
    with suppress(ImageError):
        kind = (open_bytes(digest, data).format or "").lower()
        suffix = SUFFIXES.get(kind, f".{kind}")
    path = _folder() / f"{digest}{suffix}"
    if not path.is_file():
        write_atomically(path, data, private=True)
    return path
