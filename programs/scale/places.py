"""Open paths and addresses (``s3://bucket/album``) with fsspec."""

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from agenticiqa.programs.errors import UserError

WEB = re.compile(r"https?://", re.IGNORECASE)


def open_place(name: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address or path, and the path in it. Raises UserError if fsspec cannot open it."""
    if WEB.match(name):
        raise UserError(f"{name[:80]}: web addresses are not fetched; download them first, as img2dataset does")
    try:
        fs, path = url_to_fs(name)
    except (ImportError, ValueError) as error:  # the message names the package for the protocol
        raise UserError(f"{name}: {error}") from error
    return fs, path


def matching(pattern: str) -> list[str]:
    """Return the files that match a pattern, in order."""
    if "://" not in pattern:
        return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    fs, path = open_place(pattern)
    return sorted(fs.unstrip_protocol(address) for address in fs.glob(path))


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return a text that changes with the content of a file, as far as its file system reports changes."""
    return ":".join(str(info.get(key)) for key in ("size", "ETag", "etag", "mtime", "LastModified") if key in info)
