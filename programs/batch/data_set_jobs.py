"""Make the jobs of a data set: a tar file, a table of images, or a list of paths, here or at an address.

A missing image is also a job, which fails with the reason, so that each image has exactly one row.
"""

import csv
import io
import logging
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow as pa

from agenticiqa.programs.batch.csv_table import read_csv
from agenticiqa.programs.batch.job import Job, SharedQuestion
from agenticiqa.programs.batch.job_rows import FIELDS, column_of_images, row_of_cells, row_of_line
from agenticiqa.programs.data_sets.kinds import LISTS, TAR, BrokenDataSet, kind_of
from agenticiqa.programs.data_sets.places import open_place, source_at
from agenticiqa.programs.data_sets.tables import RowImage, describe_table, files_of, image_at, place_of, read_rows
from agenticiqa.programs.data_sets.tars import images_in_tar
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.images.named_files import NamedFiles
from agenticiqa.programs.images.tables import BESIDE_IMAGE, NoImage, image_column, image_in
from agenticiqa.programs.questions.options import OptionsArgument

logger = logging.getLogger(__name__)


def jobs_in(file: str, question: SharedQuestion, skipped: Counter[str], column: str | None = None) -> Iterator[Job]:
    """Yield the jobs of a file or split of a data set, in order; images in it are read when they are assessed.

    ``column`` is the column of the images that the user named. ``skipped`` counts images in a tar file that cannot be
    assessed. Raises UserError for a file that is no data set, and BrokenDataSet after its readable jobs.
    """
    kind, count = kind_of(file), 0
    jobs: Iterable[Job]
    if kind == TAR:
        jobs = jobs_in_tar(file, question, skipped)
    elif kind in LISTS:
        jobs = (job_of(entry, question) for entry in entries_in_list(file, column))
    else:
        with opened(file):
            chosen = image_column(file, describe_table(file).columns, column)
        jobs = jobs_in_table(file, chosen, question)
    for job in jobs:
        count += 1
        yield job
    if not count:
        raise ImageError("expected images in this file, found none", file)


def jobs_in_tar(file: str, question: SharedQuestion, skipped: Counter[str], *, at_once: bool = False) -> Iterator[Job]:
    """Yield the jobs of a tar file. Raises BrokenDataSet after the readable ones."""
    with read_to_its_end(file):
        for image in images_in_tar(file, skipped, at_once=at_once, system_folders=question.system_folders):
            yield job_of({}, question, image)


def jobs_in_table(
    file: str,
    column: str,
    question: SharedQuestion,
    start: int = 0,
    stop: int | None = None,
    *,
    at_once: bool = False,
) -> Iterator[Job]:
    """Yield the jobs of the rows from ``start`` up to ``stop``. Raises BrokenDataSet after the readable ones.

    With ``at_once``, the images are read with their rows.
    """
    with read_to_its_end(file):
        table = describe_table(file)
        is_read = at_once or table.has_paths(column)
        wanted = [name for name in table.columns if name.lower() in BESIDE_IMAGE and name != column]
        stop = table.rows if stop is None else stop
        chosen = [*wanted, *([column] if is_read else [])]
        files = files_of(file)
        rows: Iterable[dict[str, Any]] = read_rows(file, chosen, start, stop) if chosen else repeat({})
        for number, cells in zip(range(start, stop), rows, strict=False):
            name = f"{file}#{number}"
            try:
                image: ImageSource = RowImage(name, file, column, number)
                if is_read:
                    image = image_in(cells[column], name, partial(image_at, files))
                row = row_of_cells({**cells, column: name}, column)
                del row["image"]  # the name of the row, which is no path
                yield job_of(_with_places(row, files), question, image)
            except UserError as error:
                yield Job(NoImage(name, str(error)))


def entries_in_list(file: str, column: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a ``.csv`` or ``.jsonl`` that names images, with paths relative to its folder.

    Raises UserError for a file that cannot be read, and for an invalid row with its place.
    """
    files = files_of(file)
    with opened(file):
        fs, path = open_place(file)
        with fs.open(path, "rb") as content:
            read = _from_csv(file, content, column) if kind_of(file) == LISTS[0] else _from_lines(content)
            for place, row_of in read:
                yield _at_place(files, place, row_of)
    if note := files.note():
        logger.warning("%s: %s", file, note)


def job_of(entry: Mapping[str, Any], question: SharedQuestion, image: ImageSource | None = None) -> Job:
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


@contextmanager
def opened(file: str) -> Iterator[None]:
    """Raise ImageError, in one line, for a file that cannot be opened in the block."""
    if "://" not in file and os.path.exists(file) and not (os.path.isfile(file) or os.path.isdir(file)):
        raise ImageError("expected a file, found a pipe or a device; name another file", file)
    try:
        yield
    except FileNotFoundError as error:
        raise ImageError("there is no such file; check the path", file) from error
    except (OSError, pa.ArrowException) as error:
        raise ImageError(f"cannot be read ({error})", file) from error


@contextmanager
def read_to_its_end(file: str) -> Iterator[None]:
    """Raise BrokenDataSet for an error of reading in the block."""
    try:
        yield
    except FileNotFoundError as error:
        raise BrokenDataSet("there is no such file; check the path", file) from error
    except (OSError, EOFError, tarfile.TarError, pa.ArrowException, KeyError, ValueError) as error:
        text = str(error) or type(error).__name__
        raise BrokenDataSet(text.removeprefix(f"{file}: "), file) from error


Rows = Iterator[tuple[str, Callable[[], dict[str, Any]]]]  # the place of each row, and a function that reads it


def _from_csv(name: str, file: Any, column: str | None) -> Rows:
    try:
        table = read_csv(io.TextIOWrapper(file, "utf-8-sig", newline=""), name)
        chosen = column_of_images(name, table.columns, column)
        for place, cells in table.rows:
            yield place, partial(row_of_cells, cells, chosen)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{name}: cannot be read as a CSV in UTF-8 ({error})") from error


def _from_lines(file: Iterable[bytes]) -> Rows:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield f"line {number}", partial(_fields_of_line, line)


def _fields_of_line(line: bytes) -> dict[str, Any]:
    row = row_of_line(line)
    return {key: row[key] for key in (*FIELDS, "options") if row.get(key)}


def _at_place(files: NamedFiles, place: str, row_of: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the entry of a row that ``row_of`` reads; its errors name the place in the table."""
    try:
        return _with_places(row_of(), files)
    except UserError as error:
        raise UserError(f"{files.title}: {place}: {error}") from error


def _with_places(row: Mapping[str, Any], files: NamedFiles) -> dict[str, Any]:
    return {**row, **{key: place_of(files, row[key]) for key in ("image", "reference") if key in row}}
