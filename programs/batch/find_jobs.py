"""Make jobs from the paths or the file of rows that a user names, with an error for each that cannot be a job."""

import csv
import io
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PureWindowsPath
from textwrap import shorten
from typing import IO, Any

from agenticiqa.configs.user_files import MOST_BYTES, STDIN, read_regular
from agenticiqa.programs.batch.csv_table import DELIMITERS, read_csv
from agenticiqa.programs.batch.job import Job, SharedQuestion
from agenticiqa.programs.batch.job_rows import ROW, checked_row, column_of_images, row_of_cells, row_of_line
from agenticiqa.programs.data_sets.kinds import LISTS, BrokenDataSet, is_address, is_data_set, kind_of
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images import ImageSource, UndecodedImage, find_images, name_of, search_images
from agenticiqa.programs.images.files import one_line, printable_path
from agenticiqa.programs.images.finding import EQUAL_ROW, Found, is_name_of_image, names_given, skipped_text
from agenticiqa.programs.images.named_files import NamedFiles, unquoted
from agenticiqa.programs.images.names import closest, folded
from agenticiqa.programs.images.sources import MOST_LISTED, local_path, read_source
from agenticiqa.programs.images.tables import IMAGE_COLUMNS
from agenticiqa.programs.questions.options import OptionsArgument, read_options

logger = logging.getLogger(__name__)


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
    column: str | None = None,
    *,
    system_folders: bool = False,
) -> FoundJobs:
    """Make a job for each image that the names refer to: files, folders, patterns, data sets, and ``-`` for stdin.

    ``data_sets.kinds`` lists the data sets. Their images are read when they are assessed. ``column`` is the column of
    images in tables, if the user named it. ``reference`` is one image for all, or a folder (see ``references_in``).
    With ``system_folders``, images in system folders are found, too. Raises ImageError if the reference does not
    exist, and UserError for options as ``read_options`` does.
    """
    result, reference_of = FoundJobs(), _references(reference)
    question = SharedQuestion(query, read_options(options), None, resize_reference, system_folders)
    jobs: dict[Job, Path | None] = {}  # each job with the folder in which its image was found
    for name in names_given(names, result.skipped, system_folders=system_folders):
        if name == STDIN:
            jobs[question.about(read_stdin(sys.stdin.buffer))] = None
            continue
        is_set = is_data_set(name)
        searched = Found() if is_set else search_images([name], system_folders=system_folders)
        if is_set or (not searched.images and os.path.isdir(name)):
            found = [*_noted(_jobs_in_data_sets(name, question, column, result), result.problems)]
            held = _distinct(found, result.skipped)
            jobs |= dict.fromkeys(job for job in held if job not in jobs)
            if held:
                searched = Found()
        for path in searched.images:
            place = local_path(name)
            jobs.setdefault(question.about(path), None if path == place else place)
        result.problems += searched.problems
        result.skipped.update(searched.skipped)
    for job, folder in jobs.items():
        try:
            own = job.reference
            result.jobs.append(replace(job, reference=reference_of(job.image, folder) if own is None else own))
        except ImageError as error:
            result.problems.append(error)
    return result


def _jobs_in_data_sets(name: str, question: SharedQuestion, column: str | None, result: FoundJobs) -> Iterator[Job]:
    """Yield the jobs of the data sets that a name stands for, or of the images at an address.

    A file that cannot be read is added to ``result``, after the jobs that it has. Raises UserError for other errors.
    """
    from agenticiqa.programs.batch.data_set_jobs import jobs_in  # imports of fsspec and pyarrow
    from agenticiqa.programs.data_sets.places import AddressedImage, data_sets_at, images_below, places_named

    places = places_named(name)
    if not places:
        raise ImageError("no file matches this pattern; check the pattern", name)
    for place in places:
        files = data_sets_at(place)
        for file in files:
            if kind_of(file) in LISTS and not is_address(file):
                listed = read_jobs(file, question.query, None, question.resize_reference, question.options, column)
                result.problems += listed.problems
                result.skipped.update(listed.skipped)
                yield from listed.jobs
            else:
                yield from _noted(jobs_in(file, question, result.skipped, column), result.problems)
        if is_address(place) and not files:
            found = images_below(place, result.skipped, system_folders=question.system_folders)
            yield from (question.about(AddressedImage(address)) for address, _ in found)


def _distinct(jobs: Sequence[Job], skipped: Counter[str]) -> list[Job]:
    """Return the jobs, equal ones once; ``skipped`` counts the others."""
    distinct = list(dict.fromkeys(jobs))
    skipped.update({EQUAL_ROW: len(jobs) - len(distinct)} if len(distinct) < len(jobs) else {})
    return distinct


def _noted(jobs: Iterable[Job], problems: list[ImageError]) -> Iterator[Job]:
    """Yield the jobs, and add the error that ends them to ``problems``."""
    try:
        yield from jobs
    except BrokenDataSet as error:
        problems.append(ImageError(error.problem, error.image))
    except UserError as error:
        problems.append(error if isinstance(error, ImageError) else ImageError(str(error)))


def read_jobs(
    file: str,
    query: str,
    reference: str | None = None,
    resize_reference: bool = False,
    options: OptionsArgument | None = None,
    column: str | None = None,
) -> FoundJobs:
    """Make a job for each row of a file; equal rows count once, and the others as skipped. ``-`` is stdin.

    The file or pipe has JSON lines, CSV with a column of images (``column``, if the user named it), or one
    path per line or before each null character. A row has ``image``, and may have ``query``, ``options`` (texts, or an
    object from letters to texts; as JSON in CSV), ``reference`` and ``resize_reference``; other keys are ignored. Paths
    are relative to the file's folder. The arguments are the defaults for rows that lack a value; ``options`` only for
    rows that lack ``query``, too. Raises UserError, in one line with file and line number, for a file that cannot be
    read and for an invalid row.
    """
    name = "<stdin>" if file == STDIN else printable_path(file)
    try:
        data = sys.stdin.buffer.read() if file == STDIN else read_regular(file, MOST_BYTES)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{name}: expected JSON lines, CSV or paths, but the file cannot be read ({why})") from error
    files = NamedFiles(name, Path(file).parent if os.path.isfile(file) else Path())  # not the folder of a pipe
    reference_of = _references(reference)
    result, jobs = FoundJobs(), list[Job]()
    for place, read in _rows_of(name, files.folder, text, column):
        try:
            row = read()
            image = _beside(files, row["image"])
            offered = options if row.get("query") is None else None
            jobs.append(
                Job(
                    image,
                    query if row.get("query") is None else row["query"],
                    reference_of(image, None) if row.get("reference") is None else _beside(files, row["reference"]),
                    row.get("resize_reference") or resize_reference,
                    offered if row.get("options") in (None, {}) else row["options"],  # {}: a row of results
                )
            )
        except ImageError as error:
            result.problems.append(error)
        except UserError as error:
            raise UserError(f"{name}: {place}: {error}") from error
    if note := files.note():
        logger.warning("%s: %s", name, note)
    result.jobs = _distinct(jobs, result.skipped)
    if not result.jobs and not result.problems:
        raise UserError(f"{name}: expected at least one row, such as {ROW}")
    return result


def read_stdin(stream: IO[bytes]) -> UndecodedImage:
    """Read one image from stdin, up to its end. Raises ImageError when it cannot be read."""
    return UndecodedImage("<stdin>", read_source(stream).content)


def _rows_of(
    name: str, folder: Path, text: str, named: str | None
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the place of each row ("line 3") and a function that reads it. Raises UserError for other files."""
    if "\0" in text:  # paths of find -print0, which may have line breaks
        paths = enumerate(filter(None, text.split("\0")), 1)
        yield from ((f"path {number}", partial(checked_row, {"image": path})) for number, path in paths)
        return
    lines = text.split("\n")  # splitlines would also split at U+2028, which JSON may contain
    filled = [(f"line {number}", line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip()]
    first = filled[0][1].strip() if filled else ""
    if first.startswith(("{", "[")) or not first:
        yield from ((place, partial(row_of_line, line)) for place, line in filled)
    elif os.path.isfile(folder / first) or (_is_path(first) and not _are_cells([line for _, line in filled], folder)):
        yield from ((place, partial(checked_row, {"image": line})) for place, line in filled)
    else:
        yield from _csv_rows(name, text.lstrip(), first, named)


def _is_path(line: str) -> bool:
    """Return whether a line of a list is the path of an image; in quotation marks or of Windows, it may have blanks."""
    path = unquoted(line)
    is_marked = path != line or "\\" in path or PureWindowsPath(path).drive
    return is_name_of_image(f"photo{PureWindowsPath(path).suffix}" if is_marked else line)


def _are_cells(lines: Sequence[str], folder: Path) -> bool:
    """Return whether lines that end like paths are rows of a table: they have several cells, and none is a file."""
    return bool({*DELIMITERS} & {*lines[0]}) and not any(os.path.isfile(folder / unquoted(line)) for line in lines)


def _csv_rows(
    name: str, text: str, first: str, named: str | None
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    try:
        table = read_csv(io.StringIO(text, newline=""), name)
        is_table = named or name.lower().endswith(".csv")
        if not is_table and not {column.lower() for column in table.columns} & {*IMAGE_COLUMNS}:
            raise UserError(
                f"{name}: expected JSON lines such as {ROW}, CSV with a column image, or a path on each line, "
                f"found {shorten(one_line(first), 60)!r}"
            )
        column = column_of_images(name, table.columns, named)
        yield from ((place, partial(row_of_cells, row, column)) for place, row in table.rows)
    except csv.Error as error:
        raise UserError(f"{name}: {error}") from error


def _beside(files: NamedFiles, name: str) -> Path:
    """Return the file that a row names: a URI, or a path relative to the list. Raises ImageError if it is missing."""
    return local_path(files.listed(name))


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
