"""Plan shards from the names that a user gives: folders, globs and addresses of images, tables, tar files, data sets.

================================  ==============================================================  =================
named                             a shard is                                                      an image is named
================================  ==============================================================  =================
image, folder or glob of images   up to 256 of them, or 256 MB                                    by its path
``.csv`` or ``.jsonl``            up to 256 rows; fields as those of ``--jobs``, ``image`` first   by its path
``.parquet``                      up to 256 rows; ``image`` is a path, or bytes                    path, or FILE#ROW
``.tar``, with or without an      one file, as img2dataset and WebDataset write them; an image     FILE/KEY.jpg
index ``.parquet`` beside it      of the index that is not in it is a failed one
folder of ``save_to_disk``        up to 256 rows of a split                                       FOLDER#ROW
folder of ``.tar`` or             as its files
``.parquet`` files
================================  ==============================================================  =================

Each may be an address that fsspec supports (``s3://``, ``gs://``, ``file://``), except http. The plan has one line for
each shard; the worker that assesses a table or tar reads its content.
"""

import csv
import io
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from agenticiqa.programs.batch.csv_table import read_csv
from agenticiqa.programs.batch.find_jobs import FIELDS, find_jobs, row_of_cells, row_of_line
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.images.finding import OWN, READ, skipped_text
from agenticiqa.programs.images.sources import is_encoded, name_of, path_of
from agenticiqa.programs.images.tables import image_column
from agenticiqa.programs.scale.image_tables import SPLIT, SPLITS, describe_table, splits_in
from agenticiqa.programs.scale.places import files_below, open_place, places_named, stamp_of

logger = logging.getLogger(__name__)

IMAGES, BYTES = 256, 256 * 2**20  # the most images and bytes in a shard
LISTS = (".csv", ".jsonl")  # suffixes of files that name one image per row


@dataclass(frozen=True)
class SharedQuestion:
    """The question about images without a question of their own."""

    query: str
    options: tuple[str, ...] | None = None
    reference: str | None = None
    resize_reference: bool = False


@dataclass(frozen=True)
class Shard:
    """A part of a run, of one ``kind``: "images", "tar" or "rows" (of Parquet, or of a saved data set).

    ``entries`` are the jobs of "images", each with ``image`` and its own fields. The other kinds have a ``file``, the
    first row and the row after the last. ``stamp`` changes with the content. This run assesses only the first ``limit``
    images of the shard (``None``: all).
    """

    number: int
    kind: str
    entries: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    start: int = 0
    stop: int = 0
    stamp: str = ""
    limit: int | None = None

    def digest(self, question: SharedQuestion) -> str:
        """Return the digest of the shard's images and questions, without its number and limit."""
        return digest([asdict(replace(self, number=0, limit=None)), asdict(question)])


def plan_shards(
    names: Iterable[str], question: SharedQuestion, problems: list[str], images: int = IMAGES
) -> Iterator[Shard]:
    """Plan shards of up to ``images`` images each, in the order of the names. Raises UserError for unreadable names.

    Other errors of a name are added to ``problems`` when its shards are read.
    """
    parts = (part for name in names for part in _parts(name, question, images, problems))
    return (Shard(number, **part) for number, part in enumerate(parts))


def _parts(name: str, question: SharedQuestion, images: int, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields of the shards of a name."""
    places = places_named(name)
    if not places:
        problems.append(f"{name}: no file matches this pattern; check the pattern")
    tables = {place: _tables_at(place) for place in places}
    for table in (table for listed in tables.values() for table in listed):
        yield from _file(table, images)
    yield from _images([place for place, listed in tables.items() if not listed], question, images, problems)


def _tables_at(place: str) -> list[str]:
    """Return the tables, tar files and splits at a place: the file itself, or those in the folder; none for images."""
    fs, path = open_place(place)
    try:
        if not fs.isdir(path):
            return [place] if place.lower().endswith((".tar", ".parquet", *LISTS)) else []
        listed = {str(entry).rpartition("/")[2] for entry in fs.ls(path, detail=False)}
    except OSError as error:
        raise UserError(f"{place}: cannot be listed ({error}); check the address and your permissions") from error
    if listed & {SPLIT, SPLITS}:
        return splits_in(place)
    held = [file for suffix in (".tar", ".parquet") for file in files_below(place, suffix)]
    held = [file for file in held if not _is_index(file, {*held})]
    if held and any(READ.fullmatch(os.path.splitext(entry)[1].lower()) for entry in listed):
        raise UserError(
            f"{place}: contains both images and Parquet or tar files; name one kind, for example {place}/*.jpg"
        )
    return held


def _file(name: str, images: int) -> Iterator[dict[str, Any]]:
    fs, path = open_place(name)
    if "://" not in name and os.path.exists(name) and not (os.path.isfile(name) or os.path.isdir(name)):
        raise UserError(f"{name}: expected a file, found a pipe or a device; name another file")
    try:
        if name.lower().endswith(".tar"):
            yield {"kind": "tar", "file": name, "stamp": stamp_of(fs.info(path))}
        elif name.lower().endswith(LISTS):
            with fs.open(path, "rb") as file:
                entries = _from_csv(name, file) if name.lower().endswith(".csv") else _from_json_lines(name, file)
                yield from ({"kind": "images", "entries": part} for part in _cut(entries, images))
        else:
            yield from _rows(name, images)
    except FileNotFoundError as error:
        raise UserError(f"{name}: there is no such file; check the path") from error
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{name}: cannot be read ({error})") from error


def _from_csv(name: str, file: Any) -> Iterator[dict[str, Any]]:
    try:
        table = read_csv(io.TextIOWrapper(file, "utf-8-sig", newline=""), name)
        column = image_column(name, table.columns)
        for place, cells in table.rows:
            yield _at_place(name, place, row_of_cells, cells, column)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{name}: cannot be read as a CSV in UTF-8 ({error})") from error


def _from_json_lines(name: str, file: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield _at_place(name, f"line {number}", _fields_of_line, line)


def _fields_of_line(line: bytes) -> dict[str, Any]:
    row = row_of_line(line)
    return {key: row[key] for key in (*FIELDS, "options") if row.get(key)}


def _at_place(table: str, place: str, row_of: Callable[..., dict[str, Any]], *parts: Any) -> dict[str, Any]:
    """Return the entry of a row that ``row_of`` reads; its errors name the place in the table."""
    try:
        return _beside_table(table, row_of(*parts))
    except UserError as error:
        raise UserError(f"{table}: {place}: {error}") from error


def _rows(name: str, images: int) -> Iterator[dict[str, Any]]:
    table = describe_table(name)
    image_column(name, table.columns)
    for start in range(0, table.rows, images):
        part = {"start": start, "stop": min(start + images, table.rows)}
        yield {"kind": "rows", "file": name, **part, "stamp": table.stamp}


def _images(names: list[str], question: SharedQuestion, images: int, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields of shards of images that are named or lie in a named folder."""
    local = [name for name in names if "://" not in name or name.startswith("file://")]
    entries: Iterable[dict[str, Any]] = ()
    if local:
        search = find_jobs(local, question.query, question.reference, question.resize_reference)
        problems += map(str, search.problems)
        if own := search.skipped.pop(OWN, 0):
            logger.warning("skipped %s", skipped_text(Counter({OWN: own})))
        problems += [f"skipped {skipped_text(Counter({kind: count}))}" for kind, count in search.skipped.items()]
        entries = (_local_entry(path_of(job.image), job.reference) for job in search.jobs)
        yield from ({"kind": "images", "entries": part} for part in _cut(entries, images))
    for name in (name for name in names if name not in local):
        if question.reference:
            raise UserError(f"{name}: --reference works for local images only; name references in a table")
        part = [*_remote_entries(name)]
        if not part:
            problems.append(f"{name}: no image found; check the address")
        yield from ({"kind": "images", "entries": entries} for entries in _cut(part, images))


def _local_entry(path: Path | None, reference: Any) -> dict[str, Any]:
    assert path is not None  # find_jobs got paths
    entry: dict[str, Any] = {"image": os.fsdecode(path)}
    if reference is not None:
        entry["reference"] = name_of(reference)
    try:
        status = path.stat()
    except OSError:  # the image is assessed, and fails with the reason
        return entry
    return {**entry, "size": status.st_size, "stamp": str(status.st_mtime_ns)}


def _remote_entries(name: str) -> Iterator[dict[str, Any]]:
    fs, path = open_place(name)
    files = fs.find(path, detail=True)
    for file, info in sorted(files.items()):
        if file == path or READ.fullmatch(os.path.splitext(file)[1].lower()):
            yield {"image": fs.unstrip_protocol(file), "size": info.get("size") or 0, "stamp": stamp_of(info)}


def _cut(entries: Iterable[dict[str, Any]], images: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries in parts of at most ``images`` images and ``BYTES`` bytes."""
    part: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        if part and (len(part) >= images or size + entry.get("size", 0) > BYTES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.get("size", 0)
    if part:
        yield part


def _is_index(name: str, held: set[str]) -> bool:
    """Return whether this is the table that img2dataset writes beside a tar file."""
    return name.endswith(".parquet") and f"{name.removesuffix('.parquet')}.tar" in held


def entry_of_row(table: str, cells: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the job of a row; its paths are relative to the table's folder. Raises UserError as ``row_of_cells``."""
    return _beside_table(table, row_of_cells(cells, column))


def _beside_table(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, **{key: _beside(table, row[key]) for key in ("image", "reference") if key in row}}


def _beside(table: str, name: str) -> str:
    return name if "://" in name or is_encoded(name) else os.path.join(os.path.dirname(table), name)
