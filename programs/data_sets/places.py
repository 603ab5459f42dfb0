"""Open paths and addresses (``s3://bucket/album``) with fsspec, and find the data sets there."""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape, glob
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from agenticiqa.configs.user_files import MOST_PLAIN_BYTES
from agenticiqa.programs.data_sets.kinds import PARQUET, SPLIT, SPLITS, TAR, kind_of
from agenticiqa.programs.errors import ImageError, OfImage, UserError
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.finding import IN_SYSTEM_FOLDER, READ, in_system_folder
from agenticiqa.programs.images.names import PATTERN, expanded
from agenticiqa.programs.images.own import is_shard_folder
from agenticiqa.programs.images.sources import StoredImage, without_scheme

WEB = re.compile(r"https?://", re.IGNORECASE)
TRIES = 3  # attempts to read an image at an address


class Unreachable(OfImage):
    """Raised when an image at an address could not be read, for a temporary reason."""


@dataclass(frozen=True)
class AddressedImage(StoredImage):
    """An image at an address, which is also its name."""

    def read_content(self) -> bytes:
        """Download the image. Raises ImageError if it does not exist, and Unreachable if reading it fails."""
        if WEB.match(self.source):
            raise ImageError("web addresses are not fetched; download the image first", self.source[:200])
        fs, path = open_place(self.source)
        for attempt in range(1, TRIES + 1):
            try:
                return bytes(fs.cat_file(path, end=MOST_PLAIN_BYTES + 1))
            except FileNotFoundError as error:
                raise ImageError("expected an image, but there is no such file", self.source) from error
            except PermissionError as error:
                raise ImageError("expected an image, but permission to read it was denied", self.source) from error
            except Exception as error:  # each store has its own exceptions
                if attempt == TRIES:
                    why = f"{type(error).__name__}: {error}"
                    raise Unreachable(f"could not be read in {TRIES} tries ({why})", self.source) from error
        raise AssertionError("the last attempt must return or raise an error")


def source_at(name: str) -> ImageSource:
    """Return the image at a path or an address."""
    return AddressedImage(name) if "://" in name and not name.startswith("file://") else name


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
    name = without_scheme(name)
    if "://" not in name:
        places = expanded(name)
        return [] if places == [name] and PATTERN.search(name) and not os.path.exists(name) else places
    fs, place = open_place(name)
    return [name] if not PATTERN.search(place) or fs.exists(place) else _matching(fs, _escaped(fs, place))


def files_below(folder: str, suffix: str) -> list[str]:
    """Return the files with this suffix in a folder, at any depth, in order, without own results and system folders."""
    if "://" in folder:
        fs, place = open_place(folder)
        return _matching(fs, f"{escape(place.rstrip('/'))}/**/*{suffix}")
    files = sorted(glob(os.path.join(escape(folder), "**", f"*{suffix}"), recursive=True))
    files = [file for file in files if os.path.isfile(file) and not in_system_folder(file, folder)]
    return [file for file in files if not is_shard_folder(os.path.dirname(file))]


def data_sets_at(place: str) -> list[str]:
    """Return the files and splits of data sets at a place: the file itself, or those in the folder; none for images.

    Raises UserError for a folder that cannot be listed, and one of both images and tar or Parquet files.
    """
    fs, path = open_place(place)
    try:
        if not fs.isdir(path):
            return [place] if kind_of(place) else []
        listed = {str(entry).rpartition("/")[2] for entry in fs.ls(path, detail=False)}
    except Exception as error:  # each store has its own exceptions
        raise UserError(f"{place}: cannot be listed ({error}); check the address and your permissions") from error
    if listed & {SPLIT, SPLITS}:
        return _splits_in(place)
    held = [file for suffix in (TAR, PARQUET) for file in files_below(place, suffix)]
    held = [file for file in held if not _is_index(file, {*held})]
    if held and any(READ.fullmatch(os.path.splitext(entry)[1].lower()) for entry in listed):
        raise UserError(
            f"{place}: contains both images and Parquet or tar files; name one kind, for example {place}/*.jpg"
        )
    return held


def images_below(name: str, skipped: Counter[str], *, system_folders: bool) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the image at an address, or the images below it, in order, with what the file system knows of each.

    ``skipped`` counts images in system folders, which are found only with ``system_folders``.
    """
    fs, path = open_place(name)
    files = sorted(fs.find(path, detail=True).items())
    images = [each for each in files if each[0] == path or READ.fullmatch(os.path.splitext(each[0])[1].lower())]
    found = [(fs.unstrip_protocol(file), info) for file, info in images]
    kept = found if system_folders else [each for each in found if not in_system_folder(each[0], name)]
    if len(kept) < len(found):
        skipped[IN_SYSTEM_FOLDER] += len(found) - len(kept)
    return kept


def _splits_in(name: str) -> list[str]:
    """Return the folders of the splits in a folder that ``datasets`` saved: the folder itself, or those it lists."""
    fs, path = open_place(name)
    if not fs.exists(f"{path}/{SPLITS}"):
        return [name]
    splits = json.loads(fs.cat_file(f"{path}/{SPLITS}"))["splits"]
    return [f"{name.rstrip('/')}/{split}" for split in splits]


def _is_index(name: str, held: set[str]) -> bool:
    """Return whether this is the table that img2dataset writes beside a tar file."""
    return name.endswith(PARQUET) and f"{name.removesuffix(PARQUET)}{TAR}" in held


def _escaped(fs: AbstractFileSystem, pattern: str) -> str:
    """Return a pattern in which folders before the first wildcard that exist as written stand for themselves."""
    parts = pattern.split("/")
    for number in range(1, len(parts)):
        folder = "/".join(parts[:number])
        if PATTERN.search(parts[number - 1]) and not fs.exists(folder):
            return "/".join([escape("/".join(parts[: number - 1])), *parts[number - 1 :]])
    return "/".join([escape("/".join(parts[:-1])), parts[-1]])


def _matching(fs: AbstractFileSystem, pattern: str) -> list[str]:
    return sorted(fs.unstrip_protocol(address) for address in fs.glob(pattern))


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return a text that changes with the content of a file, as far as its file system reports changes."""
    return ":".join(str(info.get(key)) for key in ("size", "ETag", "etag", "mtime", "LastModified") if key in info)
