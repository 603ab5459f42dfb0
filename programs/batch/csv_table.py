"""Read CSV tables of users strictly: no row is lost without a message."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

from agenticiqa.programs.images.finding import READ

logger = logging.getLogger(__name__)

DELIMITERS = ",;\t|"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
MEND = "remove it, or quote the whole cell and double each quotation mark inside it"

CsvRow = tuple[str, dict[str, str]]  # its place ("line 3"), and its cells by column


class CsvTable(NamedTuple):
    """The columns of a table, and its rows, which can be read once."""

    columns: list[str]
    rows: Iterator[CsvRow]


def read_csv(file: TextIO, title: str) -> CsvTable:
    """Read a table with a header from a file that was opened with ``newline=""``; ``title`` names it in the log.

    The header shows whether commas, semicolons, tabs or bars separate the cells; beside semicolons a decimal comma is
    read. Blanks around cells are removed, and absent cells are empty. Lines without any text are left out.

    Raises csv.Error, which begins with the line, for a quotation mark that does not end its own cell and for a row with
    more cells than columns. The rows raise it when they are read.
    """
    taken: list[str] = []
    first = file.readline()
    outside = re.sub(r'"[^"]*"', "", first)
    delimiter = max(DELIMITERS, key=outside.count)
    lines = _noted(chain([first], file), taken)
    records = _records(csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True), taken)
    _, header = next(records, (1, []))
    _refuse_joined(1, None, taken, delimiter, len(header))
    columns = _distinct(title, header)
    return CsvTable(columns, _rows(title, columns, records, taken, delimiter))


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return all rows of a small table. Raises OSError, UnicodeDecodeError, and csv.Error as ``read_csv`` does."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row for _, row in read_csv(file, str(path)).rows]


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _records(reader: Iterator[list[str]], taken: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with its first line; ``taken`` holds its lines until the next one is read."""
    line = 1
    while True:
        taken.clear()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            quoted = any('"' in text for text in taken)
            why = f'a quotation mark (") does not end its cell ({error}): {MEND}' if quoted else str(error)
            raise csv.Error(f"line {line}: {why}") from error
        if cells is None:
            return
        yield line, [cell.strip() for cell in cells]
        line += len(taken)


def _rows(
    title: str, columns: Sequence[str], records: Iterator[tuple[int, list[str]]], taken: list[str], delimiter: str
) -> Iterator[CsvRow]:
    empty = 0
    for line, cells in records:
        if not any(cells):
            empty += bool(cells[1:])
            continue
        if any(cells[len(columns) :]):
            raise csv.Error(
                f"line {line}: {len(cells)} cells, but the header has {len(columns)}: quote cells with {delimiter!r}"
            )
        _refuse_joined(line, cells, taken, delimiter, len(columns))
        if delimiter == ";":
            cells = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        cells += [""] * (len(columns) - len(cells))
        yield f"line {line}", dict(zip(columns, cells, strict=False))
    if empty:
        logger.warning("%s: %d rows with empty cells only are skipped", title, empty)


def _refuse_joined(line: int, row: Sequence[str] | None, lines: Sequence[str], delimiter: str, columns: int) -> None:
    """Raise csv.Error where a line after the first one of a row (or the header) is a row by itself."""
    for inside, text in enumerate(lines[1:], line + 1):
        cells = [cell.strip() for cell in text.replace('"', "").split(delimiter)]
        if _looks_like(row or cells, cells, columns):
            raise csv.Error(
                f'line {line}: a quotation mark (") joins lines {line} to {line + len(lines) - 1}, but line '
                f"{inside} looks like a row of its own: {MEND}"
            )


def _looks_like(row: Sequence[str], other: Sequence[str], columns: int) -> bool:
    """Return whether a line has a cell for each column, with a number or an image's name wherever the row has one."""
    if len(other) != columns:
        return False
    pairs = [(_kind(a), _kind(b)) for a, b in zip(row, other, strict=False) if b and not re.search(r"[\r\n]", a)]
    known = [(a, b) for a, b in pairs if a]
    return bool(known) and all(a == b for a, b in known)


def _kind(cell: str) -> str:
    if NUMBER.fullmatch(cell):
        return "number"
    return "image" if READ.fullmatch(Path(cell).suffix.lower()) else ""


def _distinct(title: str, names: Sequence[str]) -> list[str]:
    """Number repeated names ("mos.2"), and log that."""
    found: list[str] = []
    for name in names:
        number = 2
        while name and (name if number == 2 else f"{name}.{number - 1}") in found:
            number += 1
        found.append(name if number == 2 else f"{name}.{number - 1}")
    for name in dict.fromkeys(name for name in names if name and names.count(name) > 1):
        others = ", ".join(each for each in found if each.startswith(f"{name}."))
        logger.warning(
            "%s: several columns are named %s: the first one is used, the others are renamed to %s", title, name, others
        )
    return found
