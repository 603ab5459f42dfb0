"""Read CSV tables of users strictly: a misplaced quotation mark or a surplus cell is an error with its line."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

from agenticiqa.configs.user_files import MOST_BYTES, open_text

logger = logging.getLogger(__name__)

DELIMITERS = ",;\t|"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
SEPARATOR = re.compile(r'"?sep=(.)"?[,;|\t ]*[\r\n]*', re.IGNORECASE)  # a first line that spreadsheets write and hide
HOW_TO_FIX = "remove it, or quote the whole cell and double each quotation mark inside it"

CsvRow = tuple[str, dict[str, str]]  # the place of the row ("line 3"), and its cells by column


class CsvTable(NamedTuple):
    """The columns of a table, and its rows, which can be read once."""

    columns: list[str]
    rows: Iterator[CsvRow]


def read_csv(file: TextIO, title: str) -> CsvTable:
    """Read a table with a header from a file that was opened with ``newline=""``; ``title`` is its name in the log.

    The header determines whether commas, semicolons, tabs or bars separate the cells, unless a line such as ``sep=;``
    before it does. If commas do not, decimal commas are understood. Blanks around cells are removed, absent cells are
    empty, and empty rows are skipped.

    Raises csv.Error, with the line number, for a misplaced or unclosed quotation mark and for a row with more
    cells than columns. The error is raised while the rows are read.
    """
    csv.field_size_limit(MOST_BYTES)  # a cell may be an image as base64 text; that row alone is refused
    taken: list[str] = []
    first, line = file.readline(), 1
    named = SEPARATOR.fullmatch(first)
    if named:
        first, line = file.readline(), 2
    outside = re.sub(r'"[^"]*"', "", first)
    delimiter = named[1] if named else max(DELIMITERS, key=outside.count)
    lines = _noted(chain([first], file), taken)
    records = _records(csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True), taken, line)
    _, header = next(records, (line, []))
    columns = _distinct(title, header)
    return CsvTable(columns, _rows(title, columns, records, delimiter))


def with_decimal_point(cell: str) -> str:
    """Return a number with a decimal comma with a point; other texts are unchanged."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return all rows of a small table. Raises OSError, UnicodeDecodeError, and csv.Error as ``read_csv`` does."""
    with open_text(path, newline="") as file:
        return [row for _, row in read_csv(file, str(path)).rows]


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _records(reader: Iterator[list[str]], taken: list[str], line: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the number of its first line; ``taken`` has its lines until the next record is read."""
    while True:
        taken.clear()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            quoted = any('"' in text for text in taken)
            why = f'a quotation mark (") is misplaced or not closed ({error}): {HOW_TO_FIX}' if quoted else str(error)
            raise csv.Error(f"line {line}: {why}") from error
        if cells is None:
            return
        yield line, [cell.strip() for cell in cells]
        line += len(taken)


def _rows(
    title: str, columns: Sequence[str], records: Iterator[tuple[int, list[str]]], delimiter: str
) -> Iterator[CsvRow]:
    empty = 0
    for line, cells in records:
        if not any(cells):
            empty += bool(cells[1:])
            continue
        if any(cells[len(columns) :]):
            raise csv.Error(
                f"line {line}: {len(cells)} cells, but the header has {len(columns)}: put quotation marks around cells "
                f"that contain {delimiter!r}"
            )
        if delimiter != ",":
            cells = [with_decimal_point(cell) for cell in cells]
        cells += [""] * (len(columns) - len(cells))
        yield f"line {line}", dict(zip(columns, cells, strict=False))
    if empty:
        logger.warning("%s: %d rows have only empty cells and are skipped", title, empty)


def _distinct(title: str, names: Sequence[str]) -> list[str]:
    """Return the names with a number appended to repeated ones ("mos.2"), and log a warning about them."""
    columns: list[str] = []
    for name in names:
        number = 2
        while name and (name if number == 2 else f"{name}.{number - 1}") in columns:
            number += 1
        columns.append(name if number == 2 else f"{name}.{number - 1}")
    for name in dict.fromkeys(name for name in names if name and names.count(name) > 1):
        others = ", ".join(column for column in columns if column.startswith(f"{name}."))
        logger.warning(
            "%s: several columns are named %s: the first one is used, the others are renamed to %s", title, name, others
        )
    return columns
