"""Finished rows on disk: one JSON line each, appended as it is done, so that nothing finished is ever lost."""

import json
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agenticiqa.programs.errors import UserError

logger = logging.getLogger(__name__)


class ResultsFile:
    """An append-only file of JSON lines.

    Opening repairs the one thing that an interrupted run can leave behind, a last line cut short: it is dropped (the
    row was not finished) and what follows starts on a line of its own. ``rows`` are those that were there on opening.
    Raises UserError for a file that is no journal, and leaves it as it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        try:
            self.rows = self._read()
        except UserError:
            self._file.close()
            raise

    def append(self, row: dict[str, Any]) -> None:
        """Write one finished row through to the operating system. Raises ValueError for NaN or infinity."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
        self._file.write(f"{line}\n".encode())
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read(self) -> list[dict[str, Any]]:
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(lines, 1):
            row = _row(line)
            if row is not None:
                rows.append(row)
            elif number == len(lines) and not line.endswith(b"\n"):
                logger.warning("%s: the last line was cut short by an interruption and is judged again", self.path)
                self._file.truncate(sum(map(len, lines[:-1])))
                return rows
            else:
                raise UserError(f"{self.path}: line {number} is not a JSON object; move the file away")
        if lines and not lines[-1].endswith(b"\n"):
            self._file.write(b"\n")
        return rows


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
