"""Send log records to stderr (warnings, or every step), to a spinner, and to a file of JSON lines."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.cli.printable import json_text, message_line, print_error, printable, shortened
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import about, kind_of

LOGGER = "agenticiqa"
DSPY_LOGGER = "dspy.clients.lm"  # it warns about truncated answers, which this program reports and requests again
LONGEST = 2000  # characters of a message in a file, and of a line of one on stderr
WIDEST = 100  # columns of a step
LABEL = 10  # columns
MOST_FAULTS = 7  # lines about faults on stderr without -v
LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
STAGES = {  # what a spinner shows while a model is asked
    "planner": "planning",
    "localization": "locating the regions",
    "distortion_detection": "looking for distortions",
    "distortion_analysis": "assessing their severity",
    "tool_selection": "choosing tools",
    "scoring": "asking for the score",
    "answering": "answering the question",
    "replan": "checking whether the evidence suffices",
}
STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A formatter of a record as a JSON object: time (ISO 8601), level, logger, message, and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON; a long message is shortened, but prompts and replies are complete."""
        row: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shortened(record.getMessage(), LONGEST),
        }
        row |= {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        return json_text(row)  # escaped for terminals, and for programs that end a line at U+2028


class WarningFormatter(logging.Formatter):
    """A formatter of the message, after the name of the assessed image unless the message begins with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, or more for a traceback."""
        text = super().format(record)
        text = printable(text) if record.exc_info else message_line(text)
        image = vars(record).get("image")
        return text if not image or text.startswith(f"{image}: ") else f"{image}: {text}"


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
        image, kind = fields.get("image", ""), kind_of(record)
        if kind.begins:
            self.running.add(image)
            self.several |= len(self.running) > 1
        if kind.ends:
            self.running.discard(image)
        if kind.is_repeated:
            return ""
        margin = Text()
        if self.several and image:
            margin.append(printable(f"{Path(image).name}: "), "cyan")
        if not kind.ends:
            margin.append("│ " * fields.get("iteration", 0), "dim")
        return self._beside(margin, *labeled(record, kind.name))

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


class StderrHandler(logging.Handler):
    """A handler that writes to the current ``sys.stderr``, so that lines appear above a progress bar.

    Without ``every_fault``, only the first faults of servers and answers are written, because a weak model makes many.
    """

    def __init__(self, level: int = logging.NOTSET, *, every_fault: bool = True) -> None:
        super().__init__(level)
        self._every_fault, self._faults = every_fault, 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless its text is empty or it is one fault of many."""
        is_counted = not self._every_fault and kind_of(record).is_fault
        self._faults += is_counted
        if is_counted and self._faults > MOST_FAULTS:
            return
        try:
            if text := self.format(record):
                if is_counted and self._faults == MOST_FAULTS:
                    text += " (further faults are not shown; -v shows all)"
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)


class JsonFileHandler(logging.FileHandler):
    """A handler that appends JSON lines to a file.

    A write error ends the log, not the run; ``is_whole`` is then false. Raises UserError for a file that cannot be
    written, and for one with other content than a log, such as an image or a table that the command reads.
    """

    def __init__(self, file: str) -> None:
        try:
            super().__init__(file, encoding="utf-8", errors="backslashreplace")  # escapes keep it valid JSON
            first = b""
            if os.path.isfile(file):
                with open(file, "rb") as earlier:
                    first = earlier.readline(LONGEST)
        except OSError as error:
            raise UserError(f"{file}: --log cannot write this file ({error.strerror}); name another file") from error
        if first.strip() and not first.startswith(b'{"time": "'):
            self.close()
            raise UserError(f"{file}: --log would append to a file that is not a log; name another file")
        self.is_whole = True

    def handleError(self, record: logging.LogRecord) -> None:
        """Print the error once and write nothing more."""
        if self.is_whole:
            self.is_whole = False
            self.setLevel(logging.CRITICAL + 1)
            error = sys.exc_info()[1]
            print_error(f"{self.baseFilename}: the log cannot be written ({getattr(error, 'strerror', error)})")

    def close(self) -> None:
        """Close the file; errors were already reported when records were written."""
        with suppress(OSError):
            super().close()


def with_image(record: logging.LogRecord) -> bool:
    """Add the image being assessed to a record that lacks it; return True, as the filter keeps every record."""
    for name, value in about().items():
        vars(record).setdefault(name, value)
    return True


@contextmanager
def logging_to(verbose: int = 0, file: str | None = None) -> Iterator[JsonFileHandler | None]:
    """Log to stderr (-1 errors, 0 warnings, 1 steps, 2 also prompts and replies), and everything to the file.

    Yields the handler of the file, if any. Raises UserError as it does.
    """
    to_stderr = StderrHandler(LEVELS[min(verbose, 2)], every_fault=verbose > 0)
    to_stderr.setFormatter(StepFormatter() if verbose > 0 else WarningFormatter())
    handlers: list[logging.Handler] = [to_stderr]
    to_file = None
    if file is not None:
        to_file = JsonFileHandler(file)
        to_file.setLevel(logging.DEBUG)
        to_file.setFormatter(JsonLines())
        handlers.append(to_file)
    for handler in handlers:
        handler.addFilter(with_image)
    log = logging.getLogger(LOGGER)
    before = log.handlers, log.propagate, log.level
    log.handlers, log.propagate = handlers, False
    log.setLevel(min(handler.level for handler in handlers))
    dspy_log = logging.getLogger(DSPY_LOGGER)
    dspy_level = dspy_log.level
    dspy_log.setLevel(logging.ERROR)
    try:
        yield to_file
    finally:
        dspy_log.setLevel(dspy_level)
        log.handlers, log.propagate = before[:2]
        log.setLevel(before[2])
        for handler in handlers:
            handler.close()


@contextmanager
def steps_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Call ``show`` at each step of an assessment in the block, with what the program waits for.

    Requests may overlap: it waits for the last one. While no request is under way, it measures.
    """
    asked: dict[str, str] = {}  # texts of the requests under way, by stage

    def follow(record: logging.LogRecord) -> bool:
        fields = vars(record)
        if fields.get("event") == "asked":
            again = f", attempt {fields['attempt']} of {fields['attempts']}" if fields["attempt"] > 1 else ""
            asked[fields["stage"]] = STAGES.get(fields["stage"], "asking the model") + again
        elif fields.get("event") != "fallback":  # the next model is asked at once
            asked.pop(fields.get("stage", ""), None)
        show(next(reversed(asked.values()), "measuring"))
        return True

    log = logging.getLogger("agenticiqa.programs.stages.progress")
    log.addFilter(follow)
    log.setLevel(min(log.getEffectiveLevel(), logging.INFO))  # the handlers have levels of their own
    try:
        yield
    finally:
        log.setLevel(logging.NOTSET)
        log.removeFilter(follow)
