"""What is shown on a terminal: a progress bar, tables, colors of levels."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from agenticiqa.programs.cli.printable import QUIET, printable

T = TypeVar("T")

COLORS = {"Excellent": "green", "Good": "green", "Fair": "yellow", "Poor": "red", "Bad": "red"}
WIDEST = 110


def progress(items: Iterable[T], total: int, doing: str = "judging") -> Iterator[T]:
    """Yield the items, with a bar on stderr if that is a terminal and there is more than one.

    ``doing`` is the label of the bar, ``total`` the number of items.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=total < 2 or not console.is_terminal or QUIET.get(),
        redirect_stdout=sys.stdout.isatty(),
    )
    with bar:
        yield from bar.track(items, total=total)


def bar(share: float, cells: int) -> str:
    """A share in [0, 1] as a bar of ``cells`` characters."""
    filled = round(share * cells)
    return "█" * filled + "░" * (cells - filled)


def print_lines(headings: Sequence[str], lines: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> None:
    """Print lines of cells to stdout: a table on a terminal, otherwise a heading and lines with tabs between cells.

    ``numbers`` are the places of the columns that a table has at its right edge.
    """
    console = stdout_console()
    if not console.is_terminal:
        for line in (headings, *lines):
            print(tabbed(line))
        return
    table = plain_table(*map(escape, headings))
    for place in numbers:
        table.columns[place].justify = "right"
    for line in lines:
        table.add_row(*(escape(printable(cell)) for cell in line))
    console.print(table)


def tabbed(cells: Iterable[str]) -> str:
    """The cells as one line with tabs between them."""
    return "\t".join(printable(cell).replace("\n", " ") for cell in cells)


def plain_table(*columns: str) -> Table:
    """A table without lines."""
    return folding(Table(*columns, box=None, header_style="dim", padding=(0, 2, 0, 0)))


def folding(table: Table) -> Table:
    """The table with cells that go on in the next line where they are too wide, instead of losing their ends."""
    for column in table.columns:
        column.overflow = "fold"
    return table


def stdout_console() -> Console:
    """A console on stdout, at most 110 columns wide on a terminal."""
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, WIDEST)) if console.is_terminal else console
