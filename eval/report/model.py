"""Define a report, which consists of tables and sentences, and the cells of its figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.cli.printable import print_text
from agenticiqa.programs.cli.render import print_report_table
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.forms import markdown, markdown_table, markdown_text, notebook_html
from agenticiqa.programs.page.table import Cell, Table, number

if TYPE_CHECKING:
    from pandas import DataFrame

ENDS = ("value", "low", "high")
MOST_SENTENCES = 5  # sentences printed at a terminal if a file has all of them
ROWS = "About the rows"  # title of the sentences that are always printed


@dataclass(frozen=True)
class Report:
    """A report: ``figures`` in JSON types, tables that show them, and sentences that explain them.

    The first table is the headline. ``notes`` has the sentences by the title of their group, each with its full stop.
    The most important group comes first.
    """

    figures: Any
    tables: Sequence[Table]
    notes: Mapping[str, Sequence[str]]

    @property
    def sentences(self) -> list[str]:
        """Return the sentences of all groups."""
        return [sentence for group in self.notes.values() for sentence in group]

    def __repr__(self) -> str:
        return markdown(self.tables)

    def to_frame(self, table: int = 0) -> "DataFrame":
        """Return one of the tables as a DataFrame of pandas, with unrounded numbers.

        Args:
            table: The number of the table, from 0.

        Returns:
            One row per line, and one column per number, also per end of an interval.
        """
        from pandas import DataFrame  # a late import that takes half a second

        return DataFrame(self.tables[table].records)

    def _repr_html_(self) -> str:
        return "".join(map(notebook_html, self.tables))

    def write(self, folder: Path, name: str = "report") -> None:
        """Write ``report.json`` and ``report.md``, or files of another ``name``, into the folder of the run."""
        write_atomically(folder / f"{name}.json", json.dumps(self.figures, indent=2, ensure_ascii=False) + "\n")
        first, *others = self.tables
        text = [f"# {markdown_text(first.title)}", "", markdown_table(first)]
        for title, group in self.notes.items():
            text += [f"{title}:", "", *(f"- {markdown_text(sentence)}" for sentence in group), ""]
        for table in others:
            text += [f"## {markdown_text(table.title)}", "", markdown_table(table)]
        write_atomically(folder / f"{name}.md", "\n".join(text).rstrip() + "\n")

    def show(self, tables: Sequence[Table] | None = None, kept: Path | None = None) -> None:
        """Print the tables, or those given, and the sentences; if a file has all (``kept``), the first and ``ROWS``."""
        for table in self.tables if tables is None else tables:
            print_report_table(table)
        sentences = self.sentences
        if kept is not None and len(sentences) > MOST_SENTENCES:
            first = [*next(iter(self.notes.values()))[: MOST_SENTENCES - 1], *self.notes.get(ROWS, ())]
            sentences = [*first, f"{len(sentences) - len(first)} more notes are in {kept}."]
        for sentence in sentences:
            print_text(f"- {sentence}")


def figure(interval: Interval | Mapping[str, Any] | None, spec: str = ".3f", times: float = 1) -> Cell:
    """Return a figure with its interval: "0.812 [0.790, 0.834]", or "-" without one. ``times`` 100 shows percent."""
    fields: Mapping[str, Any] = asdict(interval) if isinstance(interval, Interval) else interval or {}
    ends = {end: times * fields[end] if fields.get(end) is not None else None for end in ENDS}
    scaled = Interval(ends["value"], ends["low"], ends["high"], 0)
    return Cell(format(scaled, spec), {"": ends["value"], "low": ends["low"], "high": ends["high"]})


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
