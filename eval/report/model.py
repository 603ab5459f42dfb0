"""A report of anything measured: tables of text and sentences; and their text, Markdown, LaTeX and CSV renderings.

``templates/parts.html`` of ``report.page`` is the HTML rendering of a table.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.images.files import write_atomically

PLAIN_WIDTH = 160  # columns where the output is no terminal
LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}"}


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
    """A table in LaTeX, a ``tabular`` with rules of the package booktabs."""
    rows = [
        " & ".join("".join(LATEX.get(c, c) for c in cell) for cell in row) for row in (table.headings, *table.lines)
    ]
    body = [rf"\begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}", r"\toprule", rf"{rows[0]} \\", r"\midrule"]
    body += [*(rf"{row} \\" for row in rows[1:]), r"\bottomrule", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def comma_separated(table: ReportTable) -> str:
    """A table as CSV; numbers are unrounded, what is undefined is empty."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.headings, *table.lines])
    return file.getvalue()


FORMS = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def figure(found: Mapping[str, Any] | None, spec: str = ".3f") -> str:
    """A figure (fields of ``Interval``) with its interval: "0.812 [0.790, 0.834]"; "-" where there is none."""
    return "-" if found is None else format(Interval(**found), spec)


def number(value: float | None, spec: str) -> str:
    """A number in a cell; "-" where there is none."""
    return "-" if value is None else format(value, spec)


def counted(n: int, unscored: int) -> str:
    """The number of items that figures are of, and of how many, where some have no score."""
    return f"{n} of {n + unscored}" if unscored else str(n)


def title_of(figures: Mapping[str, Any]) -> str:
    """The data of a run, its split and how much of them it is, and what judged them."""
    which = [figures.get("split") and f"split {figures['split']}", figures.get("part")]
    shown = "; ".join(filter(None, which))
    return f"{figures['data']}{f' ({shown})' if shown else ''}, {figures['backend']}"
