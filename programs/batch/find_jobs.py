"""Make jobs from the paths or the file of rows that a user names, with an error for each that cannot be a job."""

import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import IO, Any

from agenticiqa.configs.user_files import MOST_BYTES, read_regular
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.batch.csv_table import read_csv
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images import ImageSource, UndecodedImage, find_images, name_of, search_images
from agenticiqa.programs.images.files import one_line, printable_path
from agenticiqa.programs.images.finding import is_name_of_image, skipped_text
from agenticiqa.programs.images.names import closest, expanded, folded
from agenticiqa.programs.images.sources import MOST_LISTED, is_encoded, local_path, read_source
from agenticiqa.programs.images.tables import IMAGE_COLUMNS, image_column
from agenticiqa.programs.questions.options import OptionsArgument, read_options

STDIN = "-"
ROW = '{"image": "a.jpg", "query": "Main flaw?", "options": ["Blur", "Noise"]}'
MISNAMED = {"question": "query", "prompt": "query", "choices": "options", "candidates": "options"}
CELLS = {"options": '["Blur", "Noise"]', "resize_reference": "true"}  # columns of CSV with JSON in their cells
FIELDS = {"image": str, "query": str, "reference": str, "resize_reference": bool}


@dataclass
class FoundJobs:
    """The jobs in the order of the names given, each image once.

    ``problems`` has one error for each name without an image and each image without a reference. ``skipped`` counts
    files in folders that cannot be assessed, by suffix or reason (see ``images.finding``).
    """

    jobs: list[Job] = field(default_factory=list)
    problems: list[ImageError] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def not_assessed(self) -> list[str]:
        """Return a line for each problem, and one for the skipped files."""
        return [*map(str, self.problems), *([f"skipped {skipped_text(self.skipped)}"] if self.skipped else [])]


def find_jobs(
    names: Iterable[str],
    query: str,
    reference: str | None = None,
    resize_reference: bool = False,
    options: OptionsArgument | None = None,
) -> FoundJobs:
    """Make a job for each image that the names refer to: files, folders, patterns, and ``-`` for stdin.

    ``reference`` is one image for all, or a folder (see ``references_in``). Raises ImageError if the reference does not
    exist, and UserError for options as ``read_options`` does.
    """
    result = FoundJobs()
    images: dict[ImageSource, Path | None] = {}  # each image with the folder in which it was found
    for name in (path for given in names for path in expanded(given)):
        if name == STDIN:
            images[read_stdin(sys.stdin.buffer)] = None
            continue
        searched = search_images([name])
        for path in searched.images:
            place = local_path(name)
            images.setdefault(path, None if path == place else place)
        result.problems += searched.problems
        result.skipped.update(searched.skipped)
    reference_of, options = _references(reference), read_options(options)
    for image, folder in images.items():
        try:
            result.jobs.append(Job(image, query, reference_of(image, folder), resize_reference, options))
        except ImageError as error:
            result.problems.append(error)
    return result


def read_jobs(
    file: str,
    query: str,
    reference: str | None = None,
    resize_reference: bool = False,
    options: OptionsArgument | None = None,
) -> FoundJobs:
    """Make a job for each row of a file; equal rows count once. ``-`` is stdin.

    The file has JSON lines, CSV with a column of images, or one path per line. A row has ``image``, and may have
    ``query``, ``options`` (texts, or an object from letters to texts; as JSON in CSV), ``reference`` and
    ``resize_reference``; other keys are ignored. Paths are relative to the file's folder. The arguments are the
    defaults for rows that lack a value; ``options`` only for rows that lack ``query``, too. Raises UserError, in one
    line with file and line number, for a file that cannot be read and for an invalid row.
    """
    name = "<stdin>" if file == STDIN else printable_path(file)
    try:
        data = sys.stdin.buffer.read() if file == STDIN else read_regular(file, MOST_BYTES)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{name}: expected JSON lines, CSV or paths, but the file cannot be read ({why})") from error
    folder = Path() if file == STDIN else Path(file).parent
    reference_of = _references(reference)
    result, jobs = FoundJobs(), list[Job]()
    for place, read in _rows_of(name, folder, text):
        try:
            row = read()
            image = _beside(folder, row["image"])
            offered = options if row.get("query") is None else None
            jobs.append(
                Job(
                    image,
                    query if row.get("query") is None else row["query"],
                    reference_of(image, None) if row.get("reference") is None else _beside(folder, row["reference"]),
                    row.get("resize_reference") or resize_reference,
                    offered if row.get("options") in (None, {}) else row["options"],  # {}: a row of results
                )
            )
        except ImageError as error:
            result.problems.append(error)
        except UserError as error:
            raise UserError(f"{name}: {place}: {error}") from error
    result.jobs = list(dict.fromkeys(jobs))
    if not result.jobs and not result.problems:
        raise UserError(f"{name}: expected at least one row, such as {ROW}")
    return result


def read_stdin(stream: IO[bytes]) -> UndecodedImage:
    """Read one image from stdin, up to its end. Raises ImageError when it cannot be read."""
    return UndecodedImage("<stdin>", read_source(stream).content)


def _rows_of(name: str, folder: Path, text: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the place of each row ("line 3") and a function that reads it. Raises UserError for other files."""
    lines = text.split("\n")  # splitlines would also split at U+2028, which JSON may contain
    filled = [(f"line {number}", line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip()]
    first = filled[0][1].strip() if filled else ""
    if first.startswith(("{", "[")) or not first:
        yield from ((place, partial(row_of_line, line)) for place, line in filled)
    elif is_name_of_image(first) or os.path.isfile(folder / first):
        yield from ((place, partial(_checked_row, {"image": line})) for place, line in filled)
    else:
        yield from _csv_rows(name, text.lstrip(), first)


def _csv_rows(name: str, text: str, first: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    try:
        table = read_csv(io.StringIO(text, newline=""), name)
        if not {column.lower() for column in table.columns} & {*IMAGE_COLUMNS} and not name.lower().endswith(".csv"):
            raise UserError(
                f"{name}: expected JSON lines such as {ROW}, CSV with a column image, or a path on each line, "
                f"found {shorten(one_line(first), 60)!r}"
            )
        column = image_column(name, table.columns)
        yield from ((place, partial(row_of_cells, row, column)) for place, row in table.rows)
    except csv.Error as error:
        raise UserError(f"{name}: {error}") from error


def row_of_line(line: str | bytes) -> dict[str, Any]:
    """Return the row of a JSON line after checking its types. Raises UserError for an invalid row."""
    try:
        row = json_value(line)
    except ValueError as error:
        raise UserError(f"expected a JSON object, such as {ROW}") from error
    return _checked_row(row)


def row_of_cells(cells: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the row of a table's line with its image in ``column``. Raises UserError for an invalid row.

    Cells of CSV are texts, or JSON in the columns of ``CELLS``; spreadsheets write ``TRUE`` for true.
    """
    image, cells = cells[column] or "", {name.lower(): cell for name, cell in cells.items()}
    row: dict[str, Any] = {key: cells[key] for key in FIELDS.keys() | {"options"} if cells.get(key)}
    for key, example in CELLS.items():
        if isinstance(row.get(key), str):
            try:
                row[key] = json_value(row[key].lower() if key == "resize_reference" else row[key])
            except ValueError as error:
                raise UserError(f"{key} is {row[key]!r}, expected JSON such as {example}") from error
    return _checked_row({**row, "image": image})


def _checked_row(row: Any) -> dict[str, Any]:
    """Return a row after checking the types of its fields. Raises UserError for a wrong type."""
    if not isinstance(row, dict):
        raise UserError(f"expected a JSON object, such as {ROW}")
    for wrong, right in MISNAMED.items():
        if wrong in row and right not in row:
            raise UserError(f"unknown key {wrong!r}: rename it to {right!r}")
    if row.get("image") is None:
        raise UserError(f"the key 'image' is missing; expected a row such as {ROW}")
    for key, kind in FIELDS.items():
        if row.get(key) is not None and not isinstance(row[key], kind):
            raise UserError(f"{key} is a {type(row[key]).__name__}, expected a {kind.__name__}")
    if not row["image"]:
        raise UserError("image is empty, expected a path")
    return row


def _beside(folder: Path, name: str) -> Path:
    """Return the file that a row names: a URI, or a path relative to the folder. Raises ImageError if it is missing."""
    return local_path(name if "://" in name or is_encoded(name) else str(folder / name))


ReferenceOf = Callable[[ImageSource, Path | None], Path | None]


def _references(reference: str | None) -> ReferenceOf:
    """Return a function that returns the reference of an image. Both raise ImageError for a missing reference."""
    if reference is None:
        return lambda image, folder: None
    path = local_path(reference)
    return references_in(path) if path.is_dir() else lambda image, folder: path


def references_in(references: Path) -> ReferenceOf:
    """Return a function that returns the reference, below ``references``, of an image found in a folder.

    The reference has the same path in its folder as the image, apart from the suffix; else it is the only one with the
    image's name. For an image that was named without a folder, the reference's path is the end of the image's path. The
    function raises ImageError if there is no such reference, and if there are several, which it lists.
    """
    by_stem: dict[str, list[Path]] = {}
    for file in find_images([references]):
        by_stem.setdefault(folded(file.stem), []).append(file)

    def reference_of(image: ImageSource, folder: Path | None) -> Path:
        path = image if isinstance(image, Path) else Path(name_of(image))
        there = by_stem.get(folded(path.stem), [])
        wanted = (path.relative_to(folder) if folder else Path(os.path.abspath(path))).with_suffix("")
        depths = [_shared_end(wanted, file.relative_to(references).with_suffix(""), folder) for file in there]
        alike = (
            [file for file, depth in zip(there, depths, strict=True) if depth == max(depths)] if any(depths) else there
        )
        exact = closest(path.name, alike, lambda file: file.name)
        fitting = exact if len(exact) == 1 else closest(path.stem, alike, lambda file: file.stem)
        if len(fitting) == 1:
            return fitting[0]
        more = ", ..." if len(fitting) > MOST_LISTED else ""
        held = f"{len(fitting)}: {', '.join(map(str, fitting[:MOST_LISTED]))}{more}" if fitting else "none"
        problem = f"expected a reference named {path.stem}.* in {references}, found {held}"
        raise ImageError(one_line(problem), one_line(name_of(image)))

    return reference_of


def _shared_end(wanted: Path, path: Path, folder: Path | None) -> int:
    """Return the number of parts of a reference's path if it matches the image's path or its end; else 0."""
    depth = len(path.parts)
    end = wanted if folder else Path(*wanted.parts[-depth:])
    return depth if folded(str(end)) == folded(str(path)) else 0
