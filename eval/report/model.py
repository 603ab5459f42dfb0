"""A report of anything measured: tables of text and sentences; and their text, Markdown, LaTeX and CSV renderings.

``templates/parts.html`` of ``report.page`` is the HTML rendering of a table.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.csv_text import csv_text

ENDS = ("value", "low", "high")
PLAIN_WIDTH = 160  # columns where the output is no terminal
LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''"}


class Cell(str):
    """The text of a cell, and the numbers in it, unrounded, by what is added to the heading of their column in CSV."""

    numbers: Mapping[str, float | None]

    def __new__(cls, text: str, numbers: Mapping[str, float | None]) -> "Cell":
        """See the class."""
        made = super().__new__(cls, text)
        made.numbers = numbers
        return made


@dataclass(frozen=True)
class ReportTable:
    """A table: its title, headings and lines of cells; ``bold`` is the number of the line that stands out."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[Any]]
    bold: int | None = None


@dataclass(frozen=True)
class Report:
    """What was measured: ``figures`` in JSON types, the tables that show them, the first being the headline, and
    sentences, each with its full stop, that say how to read them.
    """

    figures: Any
    tables: Sequence[ReportTable]
    sentences: Sequence[str]

    def write(self, folder: Path, name: str = "report") -> None:
        """Write ``report.json`` and ``report.md``, or files of another ``name``, into the folder of the run."""
        write_atomically(folder / f"{name}.json", json.dumps(self.figures, indent=2, ensure_ascii=False) + "\n")
        first, *others = self.tables
        text = [f"# {first.title}", "", markdown(first), *(f"- {sentence}" for sentence in self.sentences), ""]
        for table in others:
            text += [f"## {table.title}", "", markdown(table)]
        write_atomically(folder / f"{name}.md", "\n".join(text).rstrip() + "\n")

    def show(self, tables: Sequence[ReportTable] | None = None) -> None:
        """Print the tables, or those given, and the sentences on stdout."""
        for table in self.tables if tables is None else tables:
            print_table(terminal(table))
        for sentence in self.sentences:
            print(f"- {sentence}")


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal, or 160 columns where there is none."""
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)).print(table)


def terminal(table: ReportTable) -> Table:
    """A table for a terminal."""
    result = Table(*table.headings, title=escape(table.title))
    for number, line in enumerate(table.lines):
        result.add_row(*map(escape, line), style="bold" if number == table.bold else None)
    return result


def markdown(table: ReportTable) -> str:
    """A table in Markdown, without its title."""
    rows = (table.headings, ["---"] * len(table.headings), *table.lines)
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped) + "\n"


def latex(table: ReportTable) -> str:
    """A table in LaTeX: a ``tabular`` with rules of booktabs, plain ones without it; above, its title as a comment."""
    rows = [
        " & ".join("".join(LATEX.get(c, c) for c in cell) for cell in row) for row in (table.headings, *table.lines)
    ]
    body = [rf"\begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}", r"\toprule", rf"{rows[0]} \\", r"\midrule"]
    body += [*(rf"{row} \\" for row in rows[1:]), r"\bottomrule", r"\end{tabular}"]
    plain = "".join(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule"))
    return "\n".join([f"% {' '.join(table.title.split())}", plain, *body]) + "\n"


def comma_separated(table: ReportTable) -> str:
    """A table as CSV, with one number a cell; numbers are unrounded, what is undefined is empty."""
    kinds = [
        dict.fromkeys(key for line in table.lines for key in getattr(line[place], "numbers", ("",)))
        for place in range(len(table.headings))
    ]
    headings = [f"{name} {key}".strip() for name, keys in zip(table.headings, kinds, strict=True) for key in keys]
    lines = [
        [_alone(cell, key) for cell, keys in zip(line, kinds, strict=True) for key in keys] for line in table.lines
    ]
    return csv_text([headings, *lines], "\n")


def _alone(cell: Any, key: str) -> Any:
    """One number of a cell, or the text of a cell without numbers."""
    if isinstance(cell, Cell):
        return cell.numbers.get(key)
    return cell if not key and cell != "-" else ""


FORMS = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def figure(found: Interval | Mapping[str, Any] | None, spec: str = ".3f", times: float = 1) -> Cell:
    """A figure with its interval: "0.812 [0.790, 0.834]"; "-" where there is none. ``times`` 100 shows percent."""
    fields: Mapping[str, Any] = asdict(found) if isinstance(found, Interval) else found or {}
    ends = {end: times * fields[end] if fields.get(end) is not None else None for end in ENDS}
    shown = Interval(ends["value"], ends["low"], ends["high"], 0)
    return Cell(format(shown, spec), {"": ends["value"], "low": ends["low"], "high": ends["high"]})


def number(value: float | None, spec: str) -> Cell:
    """A number in a cell; "-" where there is none."""
    return Cell("-" if value is None else format(value, spec), {"": value})


def probability(p: float | None) -> Cell:
    """A p value in a cell."""
    return Cell("<0.001", {"": p}) if p is not None and p < 0.001 else number(p, ".3f")


def counted(n: int, unscored: int) -> Cell:
    """The number of items that figures are of, and of how many, where some have no score."""
    return Cell(f"{n:,} of {n + unscored:,}" if unscored else f"{n:,}", {"": n, "unscored": unscored})


def title_of(figures: Mapping[str, Any]) -> str:
    """The data of a run, its split and how much of them it is, and what judged them."""
    which = [figures.get("split") and f"split {figures['split']}", figures.get("part")]
    shown = "; ".join(filter(None, which))
    return f"{figures['data']}{f' ({shown})' if shown else ''}, {figures['backend']}"
