"""Format log events of an assessment as labeled lines of text, for the live view of ``--verbose``."""

import logging
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.cli.printable import printable, shortened

WIDEST = 100
LABEL = 10  # columns
LONGEST = 2000  # characters of a line of a message, a prompt or a reply
ENDS = ("done", "failed")
HIDDEN = ("asked", "summarizing", "failed")  # another step, or the error of the command, shows the same


class StepFormatter(logging.Formatter):
    """A formatter of records: a label and the message, wrapped beside it; empty if another record shows the same.

    The label is the first word of the event's name. Records of a later planning round are indented. After several
    images were assessed in parallel, each line begins with the name of its image.
    """

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, highlight=False)
        self.console.width = min(self.console.width, WIDEST) if self.console.is_terminal else WIDEST
        self.running: set[str] = set()
        self.several = False

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of one record, without a final line break."""
        fields = vars(record)
        image, name = fields.get("image", ""), fields.get("event", "")
        if name == "begun":
            self.running.add(image)
            self.several |= len(self.running) > 1
        if name in ENDS:
            self.running.discard(image)
        if name in HIDDEN:
            return ""
        margin = Text()
        if self.several and image:
            margin.append(printable(f"{Path(image).name}: "), "cyan")
        if name not in ENDS:
            margin.append("│ " * fields.get("iteration", 0), "dim")
        return self._beside(margin, *labeled(record, name))

    def _beside(self, margin: Text, label: str, message: Text) -> str:
        """Return the label and the message as lines that begin with the margin and fit the width."""
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=LABEL, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(label, "bold"), message)
        with self.console.capture() as drawn:
            self.console.print(grid, width=max(self.console.width - margin.cell_len, 3 * LABEL))
        with self.console.capture() as before:
            self.console.print(margin, end="")
        return "\n".join(f"{before.get()}{line}".rstrip() for line in drawn.get().splitlines())


def labeled(record: logging.LogRecord, name: str) -> tuple[str, Text]:
    """Return the label of a record and its message, which does not repeat the event's name.

    Control characters become blanks, and long lines are shortened.
    """
    text = "\n".join(shortened(line, LONGEST) for line in printable(record.getMessage()).split("\n"))
    if record.levelno >= logging.WARNING:
        return "warning", Text(text, "yellow")
    if name and text.startswith(name):
        text = text.removeprefix(name).lstrip(": ")
    return name.partition("_")[0], Text(text, "dim" if record.levelno < logging.INFO else "")
