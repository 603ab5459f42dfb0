"""The steps of an assessment as a person wants to read them while they happen: a log formatter for ``--verbose``."""

import logging
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.cli.live_rows import Row, line, rows_of

WIDEST = 100
LABEL = 10  # columns
ENDS = {"done", "failed"}


class Story(logging.Formatter):
    """Turns a record into lines; into no text when a neighbour tells the same.

    On a terminal with colours. Lines of a later round of planning are indented; once several images were judged side
    by side, each line begins with its image's name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, highlight=False)
        self.console.width = min(self.console.width, WIDEST) if self.console.is_terminal else WIDEST
        self.under_way: set[str] = set()
        self.several = False

    def format(self, record: logging.LogRecord) -> str:
        """The lines of one record, without a line break at their end."""
        told = vars(record)
        image, name = told.get("image", ""), told.get("event", "")
        before = Text("│ " * (0 if name in ENDS else told.get("iteration", 0)), "dim")
        if name == "begun":
            self.under_way.add(image)
            self.several |= len(self.under_way) > 1
        if name in ENDS:
            self.under_way.discard(image)
        if self.several and image:
            before = line((f"{Path(image).name}: ", "cyan")) + before
        return "\n".join(self._drawn(before, rows_of(record)))

    def _drawn(self, before: Text, rows: list[Row]) -> list[str]:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=LABEL, no_wrap=True)
        grid.add_column(overflow="fold")
        for label, body in rows:
            grid.add_row(Text(label, "bold"), body)
        with self.console.capture() as drawn:
            self.console.print(grid, width=max(self.console.width - before.cell_len, 3 * LABEL))
        with self.console.capture() as margin:
            self.console.print(before, end="")
        return [f"{margin.get()}{each}".rstrip() for each in drawn.get().splitlines()]
