"""Print to a terminal: a progress bar, tables, colors of levels."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TypeVar

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from agenticiqa.programs.cli.logs import steps_shown
from agenticiqa.programs.cli.printable import VERBOSITY, printable
from agenticiqa.programs.page.table import Table

T = TypeVar("T")

COLORS = {"Excellent": "green", "Good": "green", "Fair": "yellow", "Poor": "red", "Bad": "red"}
WIDEST = 110
REPORT_WIDTH = 160  # characters in a line of a report if the output is not a terminal
GAP = 2  # blanks behind each column of a table
IMAGE, NAME = "image", "name"  # the headings of a column of paths, and of names that users copy as a whole


def progress(
    items: Iterable[T], total: int | None, doing: str = "assessing", size: Callable[[T], int] = lambda item: 1
) -> Iterator[T]:
    """Yield the items; if stderr is a terminal, show a bar meanwhile, or a spinner with the current step for one item.

    ``doing`` is the label of the bar, and the first text of the spinner. ``total`` is the sum of the items' ``size``;
    ``None`` if it is not known. The spinner ends before its item is yielded. It is not shown with -v, which prints the
    steps.
    """
    console = Console(stderr=True, soft_wrap=True)  # lines that appear above are not broken
    one, text = total == 1, TextColumn("{task.description}")
    is_wanted = VERBOSITY.get() == 0 if one else total != 0 and VERBOSITY.get() >= 0
    is_shown = is_wanted and console.is_interactive and sys.stderr.isatty()  # FORCE_COLOR makes a file interactive
    columns = [SpinnerColumn("line"), text] if one else [text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    bar = Progress(*columns, console=console, transient=True, disable=not is_shown, redirect_stdout=sys.stdout.isatty())
    task = bar.add_task(doing, total=total)
    with bar, steps_shown(lambda step: bar.update(task, description=step)) if one and is_shown else nullcontext():
        for item in items:
            if one:
                bar.stop()  # the caller prints the item
            yield item
            bar.advance(task, size(item))


def bar(share: float, cells: int) -> str:
    """Return a share in [0, 1] as a bar of ``cells`` characters."""
    filled = round(share * cells)
    return "█" * filled + "░" * (cells - filled)


def print_table(table: Table) -> None:
    """Print a table to stdout, without its title; if stdout is no terminal, as lines with tabs between cells.

    On a terminal, columns without any text are omitted. If the table is too wide, folders before the name of an image
    become "…/", and texts wrap.
    """
    console = stdout_console()
    if not console.is_terminal:
        for line in (table.headings, *table.lines):
            print(tabbed(line))
        return
    columns = [[printable(cell) for cell in (heading, *cells)] for heading, cells in table.columns]
    places = [place for place, (_, *cells) in enumerate(columns) if any(cells) or not cells]
    is_numeric = table.numeric
    columns, numeric = [columns[place] for place in places], [is_numeric[place] for place in places]
    widths = _widths(columns, console.width)
    drawn = plain_table()
    for column, width, is_number in zip(columns, widths, numeric, strict=True):
        justify: JustifyMethod = "right" if is_number else "left"
        drawn.add_column(escape(column[0]), width=width, justify=justify, overflow="fold")
        if column[0] == IMAGE:
            column[1:] = [_without_folders(cell, width) for cell in column[1:]]
    for cells in zip(*(column[1:] for column in columns), strict=True):
        drawn.add_row(*map(escape, cells))
    console.print(drawn)


def print_report_table(table: Table) -> None:
    """Print a table of a report with its title and frame, as wide as the terminal, or 160 characters without one."""
    console, table = Console(highlight=False), table.printable
    drawn = RichTable(*table.headings, title=escape(table.title))
    for number, line in enumerate(table.lines):
        drawn.add_row(*map(escape, line), style="bold" if number == table.bold else None)
    (console if console.is_terminal else Console(highlight=False, width=REPORT_WIDTH)).print(drawn)


def print_remark(text: str) -> None:
    """Print a remark below a table, or to stderr if stdout is not a terminal."""
    console = stdout_console()
    if console.is_terminal:
        console.print(Text(printable(text), style="dim"))
    else:
        print(printable(text), file=sys.stderr)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column, headings included, so that the table fits without breaking words, if possible.

    Folders of images are shortened first, then the widest texts are wrapped. Words are broken last, except in names.
    """
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    narrowest = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    excess = sum(widths) + GAP * len(widths) - room
    for place, column in enumerate(columns):
        if column[0] == IMAGE:
            narrowest[place] = max(cell_len(_without_folders(cell, 0)) for cell in column)
            taken = min(max(excess, 0), widths[place] - narrowest[place])
            widths[place], excess = widths[place] - taken, excess - taken
    whole_names = [width if column[0] == NAME else 1 for width, column in zip(narrowest, columns, strict=True)]
    for lowest in (narrowest, whole_names):
        while excess > 0 and (wide := [n for n, width in enumerate(widths) if width > lowest[n]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
            excess -= 1
    return widths


def _without_folders(path: str, width: int) -> str:
    """Return a path without leading folders, so that it fits into ``width``; its name stays whole."""
    text = path
    while cell_len(text) > width and "/" in path:
        path = path.partition("/")[2]
        text = f"…/{path}"
    return text


def tabbed(cells: Iterable[str]) -> str:
    """Return the cells as one line with tabs between them."""
    return "\t".join(printable(cell).replace("\n", " ") for cell in cells)


def plain_table(*columns: str) -> RichTable:
    """Return a table without lines, which wraps cells that are too wide."""
    table = RichTable(*columns, box=None, header_style="dim", padding=(0, GAP, 0, 0))
    for column in table.columns:
        column.overflow = "fold"
    return table


def stdout_console() -> Console:
    """Return a console on stdout, at most 110 columns wide on a terminal."""
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, WIDEST)) if console.is_terminal else console
