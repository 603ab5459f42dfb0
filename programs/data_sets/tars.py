"""Read the images in a tar file, as img2dataset and WebDataset write it, with one walk over its headers."""

import os
import posixpath
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.programs.data_sets.kinds import PACKED_TAR, PARQUET, TAR
from agenticiqa.programs.data_sets.places import open_place
from agenticiqa.programs.data_sets.tables import describe_table, read_rows
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import ImageSource, UndecodedImage
from agenticiqa.programs.images.finding import (
    BROKEN_LINK,
    IN_SYSTEM_FOLDER,
    LONGEST_SIGNATURE,
    in_system_folder,
    installed_formats,
    unread_suffix,
)
from agenticiqa.programs.images.sources import StoredImage, read_image
from agenticiqa.programs.images.tables import NoImage

FOUND = "success"  # img2dataset's status of a downloaded image
MOST_LINKS = 8  # links from one member to the next


@dataclass(frozen=True)
class TarMember(StoredImage):
    """An image in a tar file, by its place and its size in bytes."""

    file: str
    offset: int
    size: int

    @property
    def place(self) -> tuple[str, int]:
        """The tar file, and the offset."""
        return self.file, self.offset

    def read_content(self) -> bytes:
        """Read the image. Raises ImageError."""
        fs, path = open_place(self.file)
        wanted = min(self.size, MOST_PLAIN_BYTES + 1)
        try:
            data = bytes(fs.cat_file(path, start=self.offset, end=self.offset + wanted))
        except Exception as error:  # each store has its own exceptions
            raise ImageError(f"the tar file cannot be read ({error})", self.source) from error
        if len(data) < wanted:
            raise ImageError("the tar file was cut short after it was listed", self.source)
        return data


def images_in_tar(
    name: str, skipped: Counter[str], *, at_once: bool = False, system_folders: bool = False
) -> Iterator[ImageSource]:
    """Yield the images in a tar file, then one that fails for each that its index lists and the file lacks.

    With ``at_once``, the content is read in the same pass, so that a file at an address is downloaded once. ``skipped``
    counts images that cannot be assessed, as ``images.finding`` does in folders, and those in system folders, without
    ``system_folders``. Raises OSError, and TarError for a file that is damaged or cut short, after its readable images.
    """
    if PACKED_TAR.search(name):
        raise ImageError("compressed tar files are not read; decompress it first, for example with gunzip", name)
    fs, path = open_place(name)
    expected, seen, installed = _index_of(name), set[str](), installed_formats()
    given = Counter[str]()  # images of each name
    with fs.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            folder, _, own = member.name.rpartition("/")
            if any(part.startswith(".") for part in member.name.split("/") if part not in (".", "..")):
                continue  # hidden, as in folders: a Mac writes ._NAME beside each file
            held = _file_of(tar, member)
            unread = unread_suffix(os.path.splitext(own)[1].lower(), installed, partial(_head_of, tar, held))
            if unread is None:
                continue
            if not system_folders and in_system_folder(member.name, ""):
                skipped[IN_SYSTEM_FOLDER] += not member.isdir()
                continue
            if held is None or unread:
                skipped[unread or BROKEN_LINK] += not member.isdir()
                continue
            key = own.partition(".")[0]  # WebDataset splits names in this way
            seen.add(f"{folder}/{key}" if folder else key)
            source = f"{name}/{member.name}"
            given[source] += 1
            if given[source] > 1:  # an archive may hold several members of one name
                source = f"{source}#{given[source]}"
            yield _content(tar, held, source) if at_once else TarMember(source, name, held.offset_data, held.size)
        # tarfile treats a damaged header, and a cut between two members, as the end of the file.
        file.seek(tar.offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"damaged or cut short after {len(seen)} images")
    for key in expected:
        if key not in seen:
            yield NoImage(f"{name}/{key}", "the index lists it, but it is missing in the tar")


def _content(tar: tarfile.TarFile, held: tarfile.TarInfo, source: str) -> ImageSource:
    """Return an image with its content, or one that fails with the reason. Raises TarError for a cut file."""
    try:
        data = read_image(source, tar.extractfile(held))
    except ImageError as error:
        return NoImage(source, error.problem)
    if len(data) < min(held.size, MOST_BYTES):
        raise tarfile.ReadError(f"cut short in {held.name}")
    return UndecodedImage(source, data)


def _file_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return a member that is a file, or the one that it links to; ``None`` if there is none."""
    for _ in range(MOST_LINKS):
        if not (member.issym() or member.islnk()):
            return member if member.isreg() and not member.issparse() else None
        target = member.linkname if member.islnk() else posixpath.join(posixpath.dirname(member.name), member.linkname)
        try:
            member = tar.getmember(target if member.islnk() else posixpath.normpath(target))
        except KeyError:  # a link to a file outside
            return None
    return None


def _head_of(tar: tarfile.TarFile, held: tarfile.TarInfo | None) -> bytes:
    """Return the first bytes of a member."""
    file = None if held is None else tar.extractfile(held)
    return b"" if file is None else file.read(LONGEST_SIGNATURE)


def _index_of(tar: str) -> list[str]:
    """Return the keys in the index beside a tar file; an empty list without an index."""
    index = f"{tar.removesuffix(TAR)}{PARQUET}"
    fs, path = open_place(index)
    if not fs.exists(path) or "key" not in (columns := describe_table(index).columns):
        return []
    rows = read_rows(index, [name for name in ("key", "status") if name in columns])
    return [row["key"] for row in rows if row.get("status", FOUND) == FOUND]
