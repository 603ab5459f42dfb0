"""Yield the jobs of a shard, in order: its paths, or the images in a tar file, a table or a data set.

A missing image is also a job, which fails with the reason, so that each image has exactly one row.
"""

import io
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import AgenticIQAError, ImageError, OfImage, UserError
from agenticiqa.programs.images import ImageSource, UndecodedImage, name_of
from agenticiqa.programs.images.finding import (
    BROKEN_LINK,
    LONGEST_SIGNATURE,
    installed_formats,
    skipped_text,
    unread_suffix,
)
from agenticiqa.programs.images.sources import read_image
from agenticiqa.programs.images.tables import BESIDE_IMAGE, NoImage, image_column
from agenticiqa.programs.questions.options import OptionsArgument
from agenticiqa.programs.scale.image_tables import describe_table, read_rows
from agenticiqa.programs.scale.places import WEB, open_place
from agenticiqa.programs.scale.plan_shards import Shard, SharedQuestion, entry_of_row, plan_shards

TRIES = 3  # attempts to read a remote image
FOUND = "success"  # img2dataset's status of a downloaded image


class Unreachable(OfImage):
    """Raised when a remote image could not be read, for a temporary reason."""


class BrokenShard(AgenticIQAError):
    """Raised when the file of a shard cannot be read to its end; the message is one line."""


@dataclass
class RemoteImage:
    """A remote image, downloaded when it is assessed: a binary file without seek, for ``images.sources``."""

    name: str
    _content: io.BytesIO | None = None

    def read(self, size: int = -1) -> bytes:
        """Read bytes of the image. Raises ImageError if it does not exist, and Unreachable if reading it fails."""
        if self._content is None:
            self._content = io.BytesIO(self._downloaded())
        return self._content.read(size)

    def _downloaded(self) -> bytes:
        if WEB.match(self.name):
            raise ImageError("web addresses are not fetched; download the image first", self.name[:200])
        fs, path = open_place(self.name)
        for attempt in range(1, TRIES + 1):
            try:
                return bytes(fs.cat_file(path, end=MOST_PLAIN_BYTES + 1))
            except FileNotFoundError as error:
                raise ImageError("expected an image, but there is no such file", self.name) from error
            except PermissionError as error:
                raise ImageError("expected an image, but permission to read it was denied", self.name) from error
            except Exception as error:  # each store has its own exceptions
                if attempt == TRIES:
                    why = f"{type(error).__name__}: {error}"
                    raise Unreachable(f"could not be read in {TRIES} tries ({why})", self.name) from error
        raise AssertionError("the last attempt must return or raise an error")


def jobs_of(shard: Shard, question: SharedQuestion, skipped: Counter[str]) -> Iterator[Job]:
    """Yield the jobs of a shard. Raises BrokenShard after the readable jobs if its file is damaged or missing.

    ``skipped`` counts images in a tar file that cannot be assessed, as ``images.finding`` does in folders.
    """
    kinds: dict[str, Callable[[Shard, SharedQuestion], Iterator[Job]]] = {
        "images": _of_images,
        "tar": partial(_of_tar, skipped=skipped),
        "rows": _of_rows,
    }
    try:
        yield from kinds[shard.kind](shard, question)
    except (OSError, EOFError, tarfile.TarError, pa.ArrowException, KeyError, ValueError) as error:
        text = str(error) or type(error).__name__
        raise BrokenShard(f"{shard.file}: {text.removeprefix(f'{shard.file}: ')}") from error


def jobs_named(names: Iterable[str], question: SharedQuestion, problems: list[str]) -> Iterator[Job]:
    """Yield the jobs of all shards of these names, and add to ``problems`` what a run would report about the files."""
    skipped = Counter[str]()
    for shard in plan_shards(names, question, problems):
        try:
            yield from jobs_of(shard, question, skipped)
        except BrokenShard as error:
            problems.append(str(error))
    if skipped:
        problems.append(f"skipped {skipped_text(skipped)}")


def first_images(shards: Iterable[Shard], question: SharedQuestion, limit: int) -> Iterator[Shard]:
    """Yield all shards, limited to the first ``limit`` images of all; tar files up to there are read to count them."""
    for shard in shards:
        size = _size(shard, question, limit + 1) if limit else 1
        yield shard if size <= limit else replace(shard, limit=limit)
        limit = max(limit - size, 0)


def _size(shard: Shard, question: SharedQuestion, most: int) -> int:
    """Return the number of images in a shard; counting a tar file ends at ``most``."""
    if shard.kind != "tar":
        return len(shard.entries) or shard.stop - shard.start
    size = 0
    with suppress(BrokenShard):
        for _ in islice(jobs_of(shard, question, Counter()), most):
            size += 1
    return size


def _of_images(shard: Shard, question: SharedQuestion) -> Iterator[Job]:
    for entry in shard.entries:
        yield _job(entry, question)


def _job(entry: dict[str, Any], question: SharedQuestion, image: ImageSource | None = None) -> Job:
    """Return the job of an entry; as in ``--jobs``, its own question replaces the shared question and options."""
    query, options = entry.get("query"), entry.get("options")
    offered: OptionsArgument | None = options or (question.options if query is None else None)
    reference = entry.get("reference") or question.reference
    source = source_at(entry["image"]) if image is None else image
    reference_source = None if reference is None else source_at(reference)
    resized = question.resize_reference or entry.get("resize_reference", False)
    try:
        return Job(source, question.query if query is None else query, reference_source, resized, offered)
    except UserError as error:  # an error in the options of a row
        return Job(NoImage(name_of(source), str(error)))


def source_at(name: str) -> ImageSource:
    """Return the image at a path or an address."""
    return RemoteImage(name) if "://" in name and not name.startswith("file://") else name


def _of_tar(shard: Shard, question: SharedQuestion, skipped: Counter[str]) -> Iterator[Job]:
    fs, path = open_place(shard.file)
    expected, seen, installed = _index_of(shard.file), set[str](), installed_formats()
    with fs.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            folder, _, name = member.name.rpartition("/")
            if any(part.startswith(".") for part in member.name.split("/") if part not in (".", "..")):
                continue  # hidden, as in folders: a Mac writes ._NAME beside each file
            held = _content_of(tar, member)
            unread = unread_suffix(os.path.splitext(name)[1].lower(), installed, partial(_head_of, held))
            if unread is None:
                continue
            if held is None or unread:
                skipped[unread or BROKEN_LINK] += not member.isdir()
                continue
            key = name.partition(".")[0]  # WebDataset splits names in this way
            seen.add(f"{folder}/{key}" if folder else key)
            source = f"{shard.file}/{member.name}"
            try:
                data = read_image(source, held)
            except ImageError as error:
                yield _job({}, question, NoImage(source, error.problem))
                continue
            if member.isfile() and len(data) < min(member.size, MOST_BYTES):
                raise tarfile.ReadError(f"cut short in {member.name}")
            yield _job({}, question, UndecodedImage(source, data))
        # tarfile treats a damaged header, and a cut between two members, as the end of the file.
        file.seek(tar.offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"damaged or cut short after {len(seen)} images")
    for key in expected:
        if key not in seen:
            missing = NoImage(f"{shard.file}/{key}", "the index lists it, but it is missing in the tar")
            yield _job({}, question, missing)


def _content_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """Return the file of a member or of the member that it links to; ``None`` if there is none."""
    try:
        return tar.extractfile(member)
    except KeyError:  # a link to a file outside
        return None


def _head_of(held: IO[bytes] | None) -> bytes:
    """Return the first bytes of a member, and go back to its start."""
    if held is None:
        return b""
    head = held.read(LONGEST_SIGNATURE)
    held.seek(0)
    return head


def _index_of(tar: str) -> list[str]:
    """Return the keys in the index beside a tar file; an empty list without an index."""
    index = f"{tar.removesuffix('.tar')}.parquet"
    fs, path = open_place(index)
    if not fs.exists(path) or "key" not in (columns := describe_table(index).columns):
        return []
    rows = read_rows(index, [name for name in ("key", "status") if name in columns])
    return [row["key"] for row in rows if row.get("status", FOUND) == FOUND]


def _of_rows(shard: Shard, question: SharedQuestion) -> Iterator[Job]:
    columns = describe_table(shard.file).columns
    column = image_column(shard.file, columns)
    wanted = [column, *(name for name in columns if name.lower() in BESIDE_IMAGE and name != column)]
    for place, row in enumerate(read_rows(shard.file, wanted, shard.start, shard.stop), shard.start):
        yield _of_row(shard.file, place, row, column, question)


def _of_row(file: str, place: int, row: dict[str, Any], column: str, question: SharedQuestion) -> Job:
    """Return the job of a row with an image as a path, bytes, or both, as ``datasets`` stores them."""
    name, image = f"{file}#{place}", row[column]
    if isinstance(image, dict):
        image = image.get("bytes") or image.get("path")
    try:
        if isinstance(image, bytes):
            entry = entry_of_row(file, {**row, column: name}, column)
            return _job(entry, question, UndecodedImage(name, image))
        return _job(entry_of_row(file, {**row, column: image}, column), question)
    except UserError as error:
        return Job(NoImage(name, str(error)))
