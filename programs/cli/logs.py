"""Where log records go: to stderr, as warnings or as the whole story, and to a file of JSON lines."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from agenticiqa.programs.cli.live_rows import shortened
from agenticiqa.programs.cli.live_view import Story
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import about

LOGGER = "agenticiqa"
DSPYS = "dspy.clients.lm"  # it warns of answers that were cut off, which we tell ourselves and ask again
LONGEST = 2000  # characters of one message in a file
STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one JSON object: time (ISO 8601 with zone), level, logger, message, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; of a message that is too long (a prompt), the beginning and the end."""
        row: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shortened(record.getMessage(), LONGEST),
        }
        row |= {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False, default=str)


class ToStderr(logging.Handler):
    """Writes to what ``sys.stderr`` is at the time, so that lines appear above a progress bar and not through it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless its text is empty."""
        try:
            if text := self.format(record):
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)


class ToFile(logging.FileHandler):
    """Appends; a disk that is full ends the log, not the run."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say once what is wrong, and write no more."""
        if self.level <= logging.CRITICAL:
            self.setLevel(logging.CRITICAL + 1)
            print(f"agenticiqa: the log {self.baseFilename} ends here: {sys.exc_info()[1]}", file=sys.stderr)

    def close(self) -> None:
        """Close the file; what it did not take was told when it was written."""
        with suppress(OSError):
            super().close()


def with_image(record: logging.LogRecord) -> bool:
    """A filter that drops nothing: it adds the image that was being judged to records that do not say which."""
    for name, value in about().items():
        if not hasattr(record, name):
            setattr(record, name, value)
    return True


@contextmanager
def told(verbose: int = 0, file: str | None = None) -> Iterator[None]:
    """For its duration, log records of ours go to stderr (0: warnings, 1: steps, 2: prompts, too) and to the file.

    Raises UserError when the file cannot be opened.
    """
    shown = ToStderr([logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)])
    if verbose:
        shown.setFormatter(Story())
    handlers: list[logging.Handler] = [shown]
    if file is not None:
        try:
            kept = ToFile(file, encoding="utf-8", errors="backslashreplace")  # which gives valid JSON
        except OSError as error:
            raise UserError(f"--log {file}: cannot be written ({error.strerror})") from error
        kept.setLevel(logging.DEBUG)
        kept.setFormatter(JsonLines())
        handlers.append(kept)
    for handler in handlers:
        handler.addFilter(with_image)
    log = logging.getLogger(LOGGER)
    before = log.handlers, log.propagate, log.level
    log.handlers, log.propagate = handlers, False
    log.setLevel(min(handler.level for handler in handlers))
    dspys = logging.getLogger(DSPYS)
    dspys_before = dspys.level
    dspys.setLevel(logging.ERROR)
    try:
        yield
    finally:
        dspys.setLevel(dspys_before)
        log.handlers, log.propagate = before[:2]
        log.setLevel(before[2])
        for handler in handlers:
            handler.close()
