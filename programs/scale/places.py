"""Open paths and addresses (``s3://bucket/album``) with fsspec."""

import os
import re
from collections.abc import Mapping
from glob import escape, glob
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.names import PATTERN, expanded
from agenticiqa.programs.scale.names import is_shard_folder

WEB = re.compile(r"https?://", re.IGNORECASE)
FILE_URI = re.compile(r"file://(localhost(?=/))?", re.IGNORECASE)


def open_place(name: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address or path, and the path in it. Raises UserError if fsspec cannot open it."""
    if WEB.match(name):
        raise UserError(f"{name[:80]}: web addresses are not fetched; download them first, as img2dataset does")
    try:
        fs, path = url_to_fs(name)
    except (ImportError, ValueError) as error:  # the message names the package for the protocol
        raise UserError(f"{name}: {error}") from error
    return fs, path


def places_named(name: str) -> list[str]:
    """Return the paths or addresses that a name stands for: itself if it exists, else those that match it as a pattern.

    A ``file://`` URI becomes a path. The list is empty for a pattern without a match.
    """
    if FILE_URI.match(name):
        path = path_of(name)
        name = os.fspath(path) if path and os.path.exists(path) else FILE_URI.sub("", name)
    if "://" not in name:
        places = expanded(name)
        return [] if places == [name] and PATTERN.search(name) and not os.path.exists(name) else places
    fs, place = open_place(name)
    return [name] if not PATTERN.search(place) or fs.exists(place) else _matching(fs, place)


def files_below(folder: str, suffix: str) -> list[str]:
    """Return the files with this suffix in a folder, at any depth, in order, without results of this program."""
    if "://" in folder:
        fs, place = open_place(folder)
        return _matching(fs, f"{escape(place.rstrip('/'))}/**/*{suffix}")
    files = sorted(glob(os.path.join(escape(folder), "**", f"*{suffix}"), recursive=True))
    return [file for file in files if os.path.isfile(file) and not is_shard_folder(os.path.dirname(file))]


def _matching(fs: AbstractFileSystem, pattern: str) -> list[str]:
    return sorted(fs.unstrip_protocol(address) for address in fs.glob(pattern))


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return a text that changes with the content of a file, as far as its file system reports changes."""
    return ":".join(str(info.get(key)) for key in ("size", "ETag", "etag", "mtime", "LastModified") if key in info)
