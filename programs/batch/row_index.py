"""Keep a small index of a large results file, so that resuming does not read every row.

``scores.jsonl.index`` has a line for each row: the byte offset of the row's end, its checksum (CRC-32) and its outline,
a tenth of its size. It is rebuilt from the rows if it is missing, from another version, older than the results file or
inconsistent with its last row; rows missing at its end are added. It may be deleted at any time.
"""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import Any

import orjson

from agenticiqa.programs.result_row import fault_of
from agenticiqa.signatures.types import PARSING_FAILED

SUFFIX = ".index"
FROM_BYTES = 10_000_000  # a smaller results file is read as quickly without an index
WHOLE = (
    "name",
    "image",
    "image_sha256",
    "reference",
    "reference_sha256",
    "query",
    "options",
    "content",
    "rotation",
    "run_fingerprint",
    "scorer",
    "query_type",
    "probability_source",
    "quality_score",
    "rejected_answers",
    "assessed_twice",
    "judged_twice",  # as earlier versions wrote it
    "error",
)
NO_ROW = "no row of results"
PARTS = {"executor_evidence": "failures", "fusion": "shown"}


def outline(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without its long fields: its identity, and the fields that ``lacking`` reads.

    The outline of an invalid row (``result_row``) has only an ``error``, which begins with ``NO_ROW``.
    """
    found = {key: row[key] for key in WHOLE if key in row}
    if row.get("quality_reasoning") == PARSING_FAILED:
        found["quality_reasoning"] = PARSING_FAILED
    for key, part in PARTS.items():
        inner = row.get(key)
        if isinstance(inner, dict) and inner.get(part):
            found[key] = {part: inner[part]}
    why = fault_of({name: value for name, value in found.items() if name not in PARTS})
    return {"error": f"{NO_ROW}: {why}"} if why else found


class RowIndex:
    """The index of a results file, open for appending; it covers the first ``rows`` rows, which have ``end`` bytes.

    If the index cannot be written, it covers no rows, without an error.
    """

    def __init__(self, results: Path) -> None:
        real = Path(os.path.realpath(results))
        self.path = real.with_name(f"{real.name}{SUFFIX}")
        self.rows, self.end = 0, 0
        self._file: FileIO | None = None
        try:
            self._file = self.path.open("a+b", buffering=0)
            self.rows, self.end = _covered(self.path, real)
            if not self.rows:
                self._file.truncate(0)
                self._write(_head())
        except OSError:
            self.remove()

    def add(self, line: bytes, row: Mapping[str, Any]) -> None:
        """Add the next row of the results file, which is ``line``."""
        if self._file:
            entry = [self.end + len(line), zlib.crc32(line), outline(row)]
            try:
                self._write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
                self.rows, self.end = self.rows + 1, self.end + len(line)
            except OSError:
                self.remove()

    def outlines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the outline of each covered row, with the offset in bytes at which the row begins."""
        if not self.rows:
            return
        begin, rows = 0, self.rows
        with self.path.open("rb") as lines:
            next(lines)
            for _ in range(rows):
                end, _, row = orjson.loads(next(lines))
                yield begin, row
                begin = end

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Close and delete the file; it then covers no rows."""
        self.close()
        self.rows, self.end = 0, 0
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        assert self._file
        if self._file.write(data) != len(data):
            raise OSError("the disk is full")


def _covered(file: Path, results: Path) -> tuple[int, int]:
    """Return how many rows an index covers, and their bytes; 0, 0 if it has to be rebuilt.

    A truncated last line of the index is dropped.
    """
    rows, begin, end, checksum = 0, 0, 0, 0
    if file.stat().st_mtime_ns < results.stat().st_mtime_ns:
        return 0, 0
    try:
        with file.open("rb") as lines:
            length = len(head := next(lines, b""))
            if head != _head():
                return 0, 0
            for line in lines:
                if not line.endswith(b"\n"):
                    os.truncate(file, length)
                    break
                rows, length, begin = rows + 1, length + len(line), end
                end, checksum, kept = orjson.loads(line)
                if not isinstance(kept, dict) or not isinstance(end, int) or end <= begin:
                    return 0, 0
        with results.open("rb") as data:
            data.seek(begin)
            return (rows, end) if zlib.crc32(data.read(end - begin)) == checksum else (0, 0)
    except (ValueError, TypeError):
        return 0, 0


def _head() -> bytes:
    return orjson.dumps({"index": version("agenticiqa")}, option=orjson.OPT_APPEND_NEWLINE)
