"""Plan shards from the names that a user gives: folders, globs and addresses of images, tables, tar files, data sets.

A shard has up to 256 images of a list, a table, a split or folders, or 256 MB of image files. A tar file is one shard.
The kinds of data sets are in ``data_sets.kinds``. The plan has one line for each shard; the worker that assesses a
table or tar reads its content.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agenticiqa.programs.batch.data_set_jobs import entries_in_list, opened
from agenticiqa.programs.batch.find_jobs import find_jobs, read_jobs
from agenticiqa.programs.batch.job import Job, SharedQuestion
from agenticiqa.programs.data_sets.kinds import LISTS, TAR, is_stream, kind_of
from agenticiqa.programs.data_sets.places import data_sets_at, images_below, open_place, places_named, stamp_of
from agenticiqa.programs.data_sets.tables import describe_table
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.images.finding import IN_SYSTEM_FOLDER, in_system_folder, skipped_problems
from agenticiqa.programs.images.sources import name_of, path_of
from agenticiqa.programs.images.tables import image_column

IMAGES, BYTES = 256, 256 * 2**20  # the most images and bytes in a shard


@dataclass(frozen=True)
class Shard:
    """A part of a run, of one ``kind``: "images", "tar" or "rows" (of Parquet, or of a saved data set).

    ``entries`` are the jobs of "images", each with ``image`` and its own fields. The other kinds have a
    ``file``; "rows" also have the ``column`` of the images, the first row and the row after the last. ``stamp`` changes
    with the content. This run assesses only the first ``limit`` images of the shard (``None``: all).
    """

    number: int
    kind: str
    entries: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    column: str = ""
    start: int = 0
    stop: int = 0
    stamp: str = ""
    limit: int | None = None

    @property
    def images(self) -> int | None:
        """The number of images that this run requests of the shard; ``None`` if a tar file has to be read for it."""
        if self.kind == "tar":
            return None
        images = len(self.entries) or self.stop - self.start
        return images if self.limit is None else min(images, self.limit)

    def digest(self, question: SharedQuestion) -> str:
        """Return the digest of the shard's images and questions, without its number and limit."""
        return digest([asdict(replace(self, number=0, limit=None)), asdict(question)])


def plan_shards(
    names: Iterable[str],
    question: SharedQuestion,
    problems: list[str],
    images: int = IMAGES,
    column: str | None = None,
) -> Iterator[Shard]:
    """Plan shards of up to ``images`` images each, in the order of the names. Raises UserError for unreadable names.

    ``column`` is the column of the images in tables, if the user named it. Other errors of a name are added to
    ``problems`` when its shards are read.
    """
    parts = (part for name in names for part in _parts(name, question, images, problems, column))
    return (Shard(number, **part) for number, part in enumerate(parts))


def _parts(
    name: str, question: SharedQuestion, images: int, problems: list[str], column: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the fields of the shards of a name; a pipe has a list of images."""
    if is_stream(name):
        about = question.query, question.reference, question.resize_reference, question.options
        listed = read_jobs(name, *about, column)
        problems += [*map(str, listed.problems), *skipped_problems(listed.skipped)]
        yield from ({"kind": "images", "entries": part} for part in _cut(map(_listed_entry, listed.jobs), images))
        return
    named = places_named(name)
    if not named:
        problems.append(f"{name}: no file matches this pattern; check the pattern")
    is_all = question.system_folders or named == [name]
    places = [place for place in named if is_all or not in_system_folder(place, name)]
    problems += skipped_problems(Counter({IN_SYSTEM_FOLDER: len(named) - len(places)}))
    data_sets = {place: data_sets_at(place) for place in places}
    for file in (file for listed in data_sets.values() for file in listed):
        yield from _file(file, images, column)
    yield from _images([place for place, listed in data_sets.items() if not listed], question, images, problems)


def _file(name: str, images: int, column: str | None) -> Iterator[dict[str, Any]]:
    kind = kind_of(name)
    if kind in LISTS:
        yield from ({"kind": "images", "entries": part} for part in _cut(entries_in_list(name, column), images))
        return
    with opened(name):
        if kind == TAR:
            fs, path = open_place(name)
            yield {"kind": "tar", "file": name, "stamp": stamp_of(fs.info(path))}
            return
        table = describe_table(name)
        chosen = image_column(name, table.columns, column)
        for start in range(0, table.rows, images):
            part = {"column": chosen, "start": start, "stop": min(start + images, table.rows)}
            yield {"kind": "rows", "file": name, **part, "stamp": table.stamp}


def _images(names: list[str], question: SharedQuestion, images: int, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the fields of shards of images that are named or lie in a named folder."""
    local = [name for name in names if "://" not in name or name.startswith("file://")]
    entries: Iterable[dict[str, Any]] = ()
    if local:
        search = find_jobs(
            local,
            question.query,
            question.reference,
            question.resize_reference,
            system_folders=question.system_folders,
        )
        problems += map(str, search.problems)
        problems += skipped_problems(search.skipped)
        entries = (_local_entry(path_of(job.image), job.reference) for job in search.jobs)
        yield from ({"kind": "images", "entries": part} for part in _cut(entries, images))
    for name in (name for name in names if name not in local):
        if question.reference:
            raise UserError(f"{name}: --reference works for local images only; name references in a table")
        skipped = Counter[str]()
        found = images_below(name, skipped, system_folders=question.system_folders)
        part = [{"image": image, "size": info.get("size") or 0, "stamp": stamp_of(info)} for image, info in found]
        problems += skipped_problems(skipped)
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


def _listed_entry(job: Job) -> dict[str, Any]:
    own = {"query": job.query, "options": job.options, "resize_reference": job.resize_reference}
    return {**_local_entry(path_of(job.image), job.reference), **own}


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
