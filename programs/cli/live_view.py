"""The log formatter of ``--verbose``: the steps of an assessment as labeled rows of text."""

import logging
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.cli.live_rows import Row, line, rows_of

WIDEST = 100
LABEL = 10  # columns
ENDS = {"done", "failed"}


class StepFormatter(logging.Formatter):
    """Formats a record as rows; as an empty text where another record has the same information.

    With colors on a terminal. Rows of a later round of planning are indented; once several images were judged in
    parallel, each row begins with the name of its image.
    """

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, highlight=False)
        self.console.width = min(self.console.width, WIDEST) if self.console.is_terminal else WIDEST
        self.running: set[str] = set()
        self.several = False

    def format(self, record: logging.LogRecord) -> str:
        """The rows of one record, without a final line break."""
        fields = vars(record)
        image, name = fields.get("image", ""), fields.get("event", "")
        before = Text("│ " * (0 if name in ENDS else fields.get("iteration", 0)), "dim")
        if name == "begun":
            self.running.add(image)
            self.several |= len(self.running) > 1
        if name in ENDS:
            self.running.discard(image)
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
