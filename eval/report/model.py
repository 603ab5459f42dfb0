"""Define a report, which consists of tables and sentences, and render it as text, Markdown, LaTeX and CSV.

``templates/parts.html`` of ``report.page`` is the HTML rendering of a table.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape as escape_html
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.images.files import without_controls, write_atomically
from agenticiqa.programs.page.csv_text import csv_text

if TYPE_CHECKING:
    from pandas import DataFrame

ENDS = ("value", "low", "high")
UNDEFINED = "-"
MOST_SENTENCES = 5  # sentences printed at a terminal if a file has all of them
ROWS = "About the rows"  # title of the sentences that are always printed
PLAIN_WIDTH = 160  # characters in a line if the output is not a terminal
LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''"}


class Cell(str):
    """The text of a table cell, and its unrounded numbers by the suffix of their column heading in CSV."""

    numbers: Mapping[str, float | None]

    def __new__(cls, text: str, numbers: Mapping[str, float | None]) -> "Cell":
        """Create a cell; see the class."""
        made = super().__new__(cls, text)
        made.numbers = numbers
        return made


@dataclass(frozen=True)
class ReportTable:
    """A table: its title, and rows with a cell (a text or a ``Cell``) for each heading, in one order.

    ``bold`` is the number of the highlighted row. ``best`` gives ``max`` or ``min`` by heading for columns with their
    best value in bold in LaTeX.
    """

    title: str
    rows: Sequence[Mapping[str, str]]
    bold: int | None = None
    best: Mapping[str, Callable[..., str]] = field(default_factory=dict)

    @property
    def headings(self) -> list[str]:
        """Return the headings of the columns."""
        return [*(self.rows[0] if self.rows else ())]

    @property
    def lines(self) -> list[list[str]]:
        """Return the cells of each row."""
        return [[*row.values()] for row in self.rows]

    @property
    def frame(self) -> "DataFrame":
        """Return the table as unrounded numbers: a column of Python objects for each text, value and interval end."""
        from pandas import DataFrame

        values = {heading: [_values(row[heading]) for row in self.rows] for heading in self.headings}
        columns = {
            f"{heading} {key}".strip(): [cell.get(key) for cell in cells]
            for heading, cells in values.items()
            for key in dict.fromkeys(chain.from_iterable(cells))
        }
        return DataFrame(columns, dtype=object)


@dataclass(frozen=True)
class Report:
    """A report: ``figures`` in JSON types, tables that show them, and sentences that explain them.

    The first table is the headline. ``notes`` has the sentences by the title of their group, each with its full stop.
    The most important group comes first.
    """

    figures: Any
    tables: Sequence[ReportTable]
    notes: Mapping[str, Sequence[str]]

    @property
    def sentences(self) -> list[str]:
        """Return the sentences of all groups."""
        return [sentence for group in self.notes.values() for sentence in group]

    def __repr__(self) -> str:
        return with_titles(self.tables)

    def _repr_html_(self) -> str:
        return "".join(map(html_of, self.tables))

    def write(self, folder: Path, name: str = "report") -> None:
        """Write ``report.json`` and ``report.md``, or files of another ``name``, into the folder of the run."""
        write_atomically(folder / f"{name}.json", json.dumps(self.figures, indent=2, ensure_ascii=False) + "\n")
        first, *others = self.tables
        text = [f"# {markdown_text(first.title)}", "", markdown(first)]
        for title, group in self.notes.items():
            text += [f"{title}:", "", *(f"- {markdown_text(sentence)}" for sentence in group), ""]
        for table in others:
            text += [f"## {markdown_text(table.title)}", "", markdown(table)]
        write_atomically(folder / f"{name}.md", "\n".join(text).rstrip() + "\n")

    def show(self, tables: Sequence[ReportTable] | None = None, kept: Path | None = None) -> None:
        """Print the tables, or those given, and the sentences; if a file has all (``kept``), the first and ``ROWS``."""
        for table in self.tables if tables is None else tables:
            print_table(terminal(table))
        sentences = self.sentences
        if kept is not None and len(sentences) > MOST_SENTENCES:
            first = [*next(iter(self.notes.values()))[: MOST_SENTENCES - 1], *self.notes.get(ROWS, ())]
            sentences = [*first, f"{len(sentences) - len(first)} more notes are in {kept}."]
        for sentence in sentences:
            print(f"- {sentence}")


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, or 160 characters wide without one."""
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)).print(table)


def terminal(table: ReportTable) -> Table:
    """Return a table for a terminal."""
    result = Table(*table.headings, title=escape(table.title))
    for number, line in enumerate(table.lines):
        result.add_row(*map(escape, line), style="bold" if number == table.bold else None)
    return result


def markdown(table: ReportTable) -> str:
    """Return a table in Markdown, without its title."""
    rows = [[*map(markdown_text, line)] for line in (table.headings, *table.lines)]
    rows.insert(1, ["---"] * len(table.headings))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def with_titles(tables: Iterable[ReportTable]) -> str:
    """Return tables in Markdown, each below its title."""
    return "\n".join(f"{markdown_text(table.title)}\n\n{markdown(table)}" for table in tables)


def markdown_text(text: str) -> str:
    """Return a text without control characters, line breaks, HTML, links and ends of cells."""
    plain = escape_html(" ".join(without_controls(text).split()), quote=False)
    return plain.replace("](", r"]\(").replace("|", r"\|")


def html_of(table: ReportTable) -> str:
    """Return a table for a notebook, which has styles of its own."""
    from pandas import DataFrame

    cells = DataFrame(table.lines, columns=table.headings)
    return f"<h4>{escape_html(table.title)}</h4>{cells.to_html(index=False)}"


def latex(table: ReportTable) -> str:
    """Return a table in LaTeX: a ``tabular`` with booktabs rules if available, and the title as a comment above.

    Texts are aligned left, numbers right, and the best value of a column is bold.
    """
    columns = {heading: [row[heading] for row in table.rows] for heading in table.headings}
    sides = "".join("r" if any(isinstance(cell, Cell) for cell in cells) else "l" for cells in columns.values())
    best = {heading: _best(table, heading) for heading in columns}
    lines = [
        [_bold(cell) if _shown(cell) == best[heading] else _latex(cell) for heading, cell in row.items()]
        for row in table.rows
    ]
    rows = [" & ".join(cells) for cells in ([*map(_latex, table.headings)], *lines)]
    body = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rf"{rows[0]} \\", r"\midrule"]
    body += [*(rf"{row} \\" for row in rows[1:]), r"\bottomrule", r"\end{tabular}"]
    plain = "".join(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule"))
    return "\n".join([f"% {' '.join(table.title.split())}", plain, *body]) + "\n"


def comma_separated(table: "ReportTable | DataFrame") -> str:
    """Return a table as CSV, with one number per cell; numbers are unrounded, and undefined values are empty."""
    frame = table.frame if isinstance(table, ReportTable) else table
    known = frame.astype(object).where(frame.notna(), None)
    return csv_text([[*frame.columns], *known.itertuples(index=False, name=None)], "\n")


FORMS = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def _values(cell: str) -> Mapping[str, Any]:
    """Return the numbers of a cell, or its text."""
    return cell.numbers if isinstance(cell, Cell) else {"": None if cell == UNDEFINED else cell}


def _shown(cell: str) -> str:
    """Return the value of a cell as text, without its interval."""
    return cell.partition(" [")[0]


def _best(table: ReportTable, heading: str) -> str | None:
    """Return the best value of a column as text; ``None`` for a column without one, and for a single row."""
    if heading not in table.best or len(table.rows) < 2:
        return None
    cells = [row[heading] for row in table.rows]
    known = {_shown(cell): value for cell in cells if (value := _values(cell).get("")) is not None}
    return table.best[heading](known, key=known.__getitem__, default=None)


def _bold(cell: str) -> str:
    value = _shown(cell)
    return rf"\textbf{{{_latex(value)}}}{_latex(cell.removeprefix(value))}"


def _latex(cell: str) -> str:
    return "".join(LATEX.get(character, character) for character in cell)


def figure(interval: Interval | Mapping[str, Any] | None, spec: str = ".3f", times: float = 1) -> Cell:
    """Return a figure with its interval: "0.812 [0.790, 0.834]", or "-" without one. ``times`` 100 shows percent."""
    fields: Mapping[str, Any] = asdict(interval) if isinstance(interval, Interval) else interval or {}
    ends = {end: times * fields[end] if fields.get(end) is not None else None for end in ENDS}
    scaled = Interval(ends["value"], ends["low"], ends["high"], 0)
    return Cell(format(scaled, spec), {"": ends["value"], "low": ends["low"], "high": ends["high"]})


def number(value: float | None, spec: str) -> Cell:
    """Return a number in a cell; "-" without one."""
    return Cell(UNDEFINED if value is None else format(value, spec), {"": value})


def probability(p: float | None) -> Cell:
    """Return a p value in a cell."""
    return Cell("<0.001", {"": p}) if p is not None and p < 0.001 else number(p, ".3f")


def counted(n: int, unscored: int) -> Cell:
    """Return the number of items with figures, and the total if some have no score."""
    return Cell(f"{n:,} of {n + unscored:,}" if unscored else f"{n:,}", {"": n, "unscored": unscored})


def title_of(figures: Mapping[str, Any]) -> str:
    """Return the title of a run: its data, split and part, and the program or scorer."""
    which = [figures.get("split") and f"split {figures['split']}", figures.get("part")]
    text = "; ".join(filter(None, which))
    return f"{figures['data']}{f' ({text})' if text else ''}, {figures['backend']}"
