"""A table with typed cells, which ``forms`` and ``cli.render`` turn into text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from agenticiqa.programs.images.files import one_line


class Cell(str):
    """The text of a table cell for people, and its unrounded values by the suffix of their column in CSV and JSON."""

    values: Mapping[str, Any]

    def __new__(cls, text: str, values: Mapping[str, Any]) -> "Cell":
        """Create a cell; see the class."""
        made = super().__new__(cls, text)
        made.values = values
        return made


UNDEFINED = Cell("-", {"": None})


@dataclass(frozen=True)
class Table:
    """A table: a cell (a text or a ``Cell``) for each heading in each line.

    ``bold`` is the number of the highlighted line. ``best`` gives ``max`` or ``min`` by heading for columns with their
    best value in bold in LaTeX.
    """

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    title: str = ""
    bold: int | None = None
    best: Mapping[str, Callable[..., str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[tuple[str, list[str]]]:
        """The heading of each column with its cells."""
        return [(heading, [line[place] for line in self.lines]) for place, heading in enumerate(self.headings)]

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers, which are aligned right."""
        return [any(isinstance(cell, Cell) and cell is not UNDEFINED for cell in cells) for _, cells in self.columns]

    @property
    def values(self) -> list[tuple[str, list[Any]]]:
        """The unrounded values as columns: one for each text, value and end of an interval; ``None`` if undefined."""
        columns = []
        for heading, cells in self.columns:
            parts = [values_of(cell) for cell in cells]
            for suffix in dict.fromkeys(chain.from_iterable(parts)) or [""]:
                columns.append((f"{heading} {suffix}".strip(), [part.get(suffix) for part in parts]))
        return columns

    @property
    def printable(self) -> "Table":
        """The same table without control characters, which names of files may contain."""
        headings, lines = map(_printable, self.headings), [[*map(_printable, line)] for line in self.lines]
        return replace(self, headings=[*headings], lines=lines, title=_printable(self.title))

    @property
    def slug(self) -> str:
        """The title as a part of a file name."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def records(self) -> list[dict[str, Any]]:
        """The unrounded values of each line by their columns."""
        columns = self.values
        return [{heading: cells[place] for heading, cells in columns} for place in range(len(self.lines))]


def table_of(
    title: str,
    rows: Sequence[Mapping[str, str]],
    bold: int | None = None,
    best: Mapping[str, Callable[..., str]] | None = None,
) -> Table:
    """Return a table of rows that have the same headings as keys, in one order."""
    return Table([*(rows[0] if rows else ())], [[*row.values()] for row in rows], title, bold, best or {})


def data_table(headings: Iterable[str], lines: Iterable[Sequence[Any]]) -> Table:
    """Return a table of plain values for CSV and JSON; a value that is no text keeps its type."""
    return Table([*headings], [[*map(plain, line)] for line in lines])


def data_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of plain values from rows that have the same keys."""
    return data_table(rows[0] if rows else (), [[*row.values()] for row in rows])


def plain(value: Any) -> str:
    """Return a cell of one value as it is; an empty cell for ``None``."""
    return value if isinstance(value, str) else Cell("" if value is None else str(value), {"": value})


def rounded(value: Any) -> Any:
    """Return a number with four decimals, which suffice for scores; other values are unchanged."""
    return round(value, 4) if isinstance(value, float) else value


def number(value: float | None, spec: str) -> Cell:
    """Return a number in a cell; "-" without one."""
    return UNDEFINED if value is None else Cell(format(value, spec), {"": value})


def _printable(cell: str) -> str:
    text = one_line(cell)
    return Cell(text, cell.values) if isinstance(cell, Cell) else text


def values_of(cell: str) -> Mapping[str, Any]:
    """Return the unrounded values of a cell by their suffix, or its text."""
    return cell.values if isinstance(cell, Cell) else {"": cell}
