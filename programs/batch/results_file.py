"""Results on disk, one JSON line each, and which of them a later run need not compute again.

A row belongs to what its :class:`Identity` names: this image (path and bytes), this reference (path and bytes), this
question, these settings. ``assess --jsonl --resume`` and ``evaluate`` use the same three steps::

    with ResultsFile(path) as results:                        # reads the rows, repairs a last line that was cut short
        resumed = resume(results.rows, wanted, identify)      # wanted: {job: its Identity}; identify: row -> Identity
        ...                                                   # judge what is not in resumed.finished
        results.append(row)

Rows are never deleted. Where a job has several, the last one counts: see :func:`latest_rows`. ``ResultsFile.rewrite``
replaces all of them at once by what they are after a fit of the fusion.
"""

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import orjson

from agenticiqa.programs.batch.file_lock import locked_by
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import one_line, printable_path, write_atomically
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.stages.options import with_options

logger = logging.getLogger(__name__)

Row: TypeAlias = dict[str, Any]
K = TypeVar("K", bound=Hashable)

JOB_KEYS = ("image", "reference", "query")  # a later row with the same values replaces an earlier one

OTHER_SETTINGS = "of another configuration"
OTHER_BYTES = "of an image or reference that has changed"
NO_SETTINGS = "without a record of their configuration"
UNSCORED = "without a score or an answer"
INCOMPLETE = "with a part that the model gave no usable answer for"

FROM_REJECTED = ("salvaged_probs", "salvaged_level", "reasoning", "uniform")  # each probability_source of a model


class Identity(NamedTuple):
    """What a result belongs to; a field that the caller does not compare by is the same in all of its identities.

    ``image`` and ``reference`` are names as the caller compares them (absolute paths, or names in a labels file), the
    hashes are SHA-256 in hex (``None`` where the file cannot be read), ``query`` is the question with its options (see
    ``question_of``), ``run_fingerprint`` is that of the settings
    (``batch.fingerprint``), ``None`` in rows of versions that did not write it.
    """

    image: str
    image_sha256: str | None
    reference: str | None
    reference_sha256: str | None
    query: str
    run_fingerprint: str | None


@dataclass(frozen=True)
class Resumed(Generic[K]):
    """What a file already holds: by job the row that still holds, and how many jobs are judged again, by reason."""

    finished: dict[K, Row]
    again: Counter[str]


class ResultsFile:
    """An append-only file of JSON lines, made with its folders if need be.

    Opening repairs what an interrupted run can leave behind: a last line that was cut short is dropped (that row was
    not finished), and what is appended starts on a line of its own. ``rows`` are those that were there on opening,
    ``length`` is the number of rows now, and ``replaced`` how many of them have a later row of the same job.

    The file is locked until it is closed. Raises UserError, in one line, for a path that cannot be written, for a file
    that another process has open in this way, and for one that holds anything but JSON objects, which is left as it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        shown = printable_path(path)
        try:
            if self.path.exists() and not self.path.is_file():
                kind = "a folder" if self.path.is_dir() else "a device"
                raise UserError(f"{shown}: expected a file to write results to, found {kind}; name another file")
            if not self.path.parent.exists():
                self.path.parent.mkdir(parents=True)
            self._file = self.path.open("a+b", buffering=0)  # so that a write that fails leaves nothing to write later
        except OSError as error:
            raise UserError(
                f"{shown}: results cannot be written there ({error.strerror}); name another file"
            ) from error
        try:
            if holder := locked_by(self._file):
                raise UserError(f"{shown}: {one_line(holder)} is writing to it; wait for its end, or name another file")
            self.rows = self._read(shown)
        except BaseException:
            self._file.close()
            raise
        self.length = len(self.rows)
        self._jobs = {_values(row) for row in self.rows}

    @property
    def replaced(self) -> int:
        """How many rows have a later one of the same image, reference and question."""
        return self.length - len(self._jobs)

    def append(self, row: Row) -> None:
        """Write one finished row through to the operating system.

        Raises ValueError for NaN or infinity, and OSError when the disk is full. Neither leaves part of a line behind.
        """
        data = _line(row)
        end = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            self._file.truncate(end)
            raise
        self.length += 1
        self._jobs.add(_values(row))

    def read(self) -> list[Row]:
        """The rows that the file holds now, those appended since it was opened among them."""
        self._file.seek(0)
        return [json.loads(line) for line in self._file.read().splitlines()]

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace all rows by these, as a whole: a crash half-way leaves the file as it was. The lock stays.

        Raises ValueError for NaN or infinity, OSError when the disk is full, and UserError when another process took
        the file in the moment in which it was replaced.
        """
        data = b"".join(_line(row) for row in rows)
        if os.name == "nt":  # where no open file can be replaced
            self._file.close()
        try:
            write_atomically(self.path, data)
        finally:
            replaced, self._file = self._file, self.path.open("a+b", buffering=0)
            replaced.close()
        if holder := locked_by(self._file):
            raise UserError(f"{printable_path(self.path)}: {one_line(holder)} began to write to it; run it again")
        self.length, self._jobs = len(rows), {_values(row) for row in rows}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read(self, shown: str) -> list[Row]:
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        rows: list[Row] = []
        for number, line in enumerate(lines, 1):
            row = _row(line)
            if row is not None:
                rows.append(row)
            elif number == len(lines) and not line.endswith(b"\n"):
                logger.warning("%s: the last line was cut short by an interruption; that row is computed again", shown)
                self._file.truncate(sum(map(len, lines[:-1])))
                return rows
            else:
                raise UserError(f"{shown}: line {number} is not a JSON object; move the file away")
        if lines and not lines[-1].endswith(b"\n"):
            self._file.write(b"\n")
        return rows


def resume(rows: Iterable[Row], wanted: Mapping[K, Identity], identify: Callable[[Row], Identity]) -> Resumed[K]:
    """Match the rows of a file to the jobs that are wanted now.

    A row whose identity equals a job's is that job's result; of several, the last. A job that only has rows of the same
    image, reference and question, but of other bytes or settings, is to be judged again, and is counted under the
    reason that the last of these rows gives. So is one whose row lacks something (see ``lacking``): without a score or
    an answer every time, with an incomplete one once, as a model that cannot do better would otherwise be asked for
    ever. Rows with an ``error`` are not results.
    """
    results: dict[Identity, Row] = {}
    incomplete: Counter[Identity] = Counter()
    last: dict[tuple[str, str | None, str], Identity] = {}
    for row in rows:
        if "error" not in row:
            identity = identify(row)
            results[identity] = row
            incomplete[identity] += lacking(row) == INCOMPLETE
            last[_job(identity)] = identity
    finished: dict[K, Row] = {}
    again: Counter[str] = Counter()
    for job, identity in wanted.items():
        if identity in results:
            lacks = lacking(results[identity])
            if lacks is None or (lacks == INCOMPLETE and incomplete[identity] > 1):
                finished[job] = results[identity]
            else:
                again[lacks] += 1
        elif _job(identity) in last:
            again[_reason(last[_job(identity)], identity)] += 1
    return Resumed(finished, again)


def lacking(row: Row) -> str | None:
    """What a result lacks because a model gave no usable answer, in the words of a reason; ``None`` for nothing.

    ``INCOMPLETE`` is one of which a step of the executor failed (``executor_evidence.failures``), or whose score was
    made of an answer that was rejected. A tool that failed is no such thing: it would fail again.
    """
    if is_unscored(row):
        return UNSCORED
    failed = (row.get("executor_evidence") or {}).get("failures")
    return INCOMPLETE if failed or row.get("probability_source") in FROM_REJECTED else None


def kept_rows(file: Path) -> Iterator[tuple[int, Row]]:
    """Each row of a results file, with the offset in bytes at which it begins; a last line cut short is left out.

    The file is only read: nothing is created, and no run that writes to it is locked out. Raises OSError, and
    ValueError for a line that is no JSON.
    """
    offset = 0
    with open(file, "rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield offset, json.loads(line)
            offset += len(line)


def latest_rows(rows: Sequence[Row], keys: Sequence[str] = JOB_KEYS) -> list[Row]:
    """The rows without those that a later row of the same job replaces, in the order of the file.

    The job is what ``keys`` name. A row with an ``error`` replaces no result. How many were replaced is logged as a
    warning, so that nobody takes the number of lines for the number of images.
    """
    latest: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows):
        job = _values(row, keys)
        if "error" not in row or job not in latest or "error" in rows[latest[job]]:
            latest[job] = number
    if replaced := len(rows) - len(latest):
        logger.warning(
            "%d of %d rows are left out: later rows of the same image and question count", replaced, len(rows)
        )
    return [rows[number] for number in sorted(latest.values())]


def question_of(row: Row) -> str:
    """The question of a row, with its options where the question's own words do not list them (as ``Job.asked``)."""
    query, options = str(row.get("query")), row.get("options")
    return with_options(query, options) if options and isinstance(options, dict) else query


def _job(identity: Identity) -> tuple[str, str | None, str]:
    return identity.image, identity.reference, identity.query


def _values(row: Row, keys: Sequence[str] = JOB_KEYS) -> tuple[Any, ...]:
    return tuple(question_of(row) if key == "query" else row.get(key) for key in keys)


def _reason(kept: Identity, wanted: Identity) -> str:
    if kept.run_fingerprint is None:
        return NO_SETTINGS
    return OTHER_SETTINGS if kept.run_fingerprint != wanted.run_fingerprint else OTHER_BYTES


def _line(row: Row) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n".encode()


def _row(line: bytes) -> Row | None:
    try:
        row = orjson.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
