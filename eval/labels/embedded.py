"""Write images embedded in a table once, byte by byte, to a cache folder, named by their digest."""

import hashlib
from pathlib import Path
from typing import Any

from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images.decoding import open_bytes
from agenticiqa.programs.images.files import HEX_DIGITS, cache_folder, write_atomically

SUFFIXES = {"jpeg": ".jpg", "mpo": ".jpg", "tiff": ".tif"}  # other formats use their own name


def file_of(cell: Any, where: str) -> tuple[str, str]:
    """Return the path of a cell's image, and its name: the path itself, or the path stored with embedded bytes, if any.

    Raises UserError, beginning with ``where``, for bytes that are not an image and for other cells.
    """
    data, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if data is None or isinstance(data, str):
        path = (data or name or "").strip()
        return path, path
    if not isinstance(data, bytes):
        raise UserError(f"{where}: expected the path or the bytes of an image, found a {type(data).__name__}")
    return str(_written(data, where)), Path(name).name if name else ""


def _written(data: bytes, where: str) -> Path:
    folder, digest = cache_folder() / "images", hashlib.sha256(data).hexdigest()[: 2 * HEX_DIGITS]
    try:
        kind = (open_bytes(where, data).format or "").lower()
    except ImageError as error:
        advice = "replace it, or remove the row"
        raise UserError(f"{where}: the embedded image cannot be read ({error.problem}); {advice}") from error
    path = folder / f"{digest}{SUFFIXES.get(kind, f'.{kind}')}"
    if not path.is_file():
        write_atomically(path, data, private=True)
    return path
