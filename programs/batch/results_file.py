"""Store results on disk, one JSON line each, and find results that a later run can reuse.

The :class:`Identity` of a row is its image (path and bytes), its reference (path and bytes), its question and its
settings. ``assess --jsonl --resume`` and ``evaluate`` use the same three steps::

    with ResultsFile(path) as results:                          # repairs a last line that was cut short
        resumed = resume(results.outlines(), wanted, identify)  # wanted: {job: its Identity}; identify: row -> Identity
        ...                                                     # assess jobs that are not in resumed.finished
        results.append(row)

Rows stay on disk and are identified by the byte offset at which they begin. An index avoids reading a large file
(``batch.row_index``). If a job has several rows, the last one counts (see :func:`latest_rows`), and
``ResultsFile.compact`` moves the others to another file. ``ResultsFile.rewrite`` replaces all rows at once after a fit
of the fusion.
"""

import errno
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import orjson

from agenticiqa.programs.batch.row_index import FROM_BYTES, NO_ROW, RowIndex, outline
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import one_line, printable_path, write_atomically
from agenticiqa.programs.questions.options import with_options
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.result_row import Row, checked_rows

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

BEGINNINGS = b'{"image": ', b'{"name": ', b'{"tool": '  # rows of assess; evaluate and optimize; calibrate

OTHER_SETTINGS = "of another configuration"
OTHER_BYTES = "of an image or reference that has changed"
NO_SETTINGS = "without a record of their configuration"
UNSCORED = "without a score or an answer"
INCOMPLETE = "without a usable model answer in one step"

FROM_REJECTED = ("salvaged_probs", "salvaged_level", "reasoning", "uniform")  # values of probability_source


class Identity(NamedTuple):
    """The inputs that a result belongs to; a field that the caller does not compare is equal in all identities.

    ``image`` and ``reference`` are names as the caller compares them (absolute paths, or names in a labels file). The
    hashes are SHA-256 in hex (``None`` if the file cannot be read). ``query`` is the question with its options (see
    ``question_of``). ``run_fingerprint`` is the fingerprint of the settings (``batch.plan_run``); it is ``None`` in
    rows of versions that did not write it.
    """

    image: str
    image_sha256: str | None
    reference: str | None
    reference_sha256: str | None
    query: str
    run_fingerprint: str | None


@dataclass(frozen=True)
class Resumed(Generic[K]):
    """The reusable results of a file: the offset of each job's valid row, and the number of repeated jobs by reason."""

    finished: dict[K, int]
    again: Counter[str]


class ResultsFile:
    """An append-only file of JSON lines, which is created with its folders if it does not exist.

    Opening the file repairs the end that an interrupted run can leave: a truncated last line is dropped (that row was
    not finished), and the next row starts on a new line. ``length`` is the number of rows, ``appended`` the number of
    rows written since the file was opened. No row is kept in memory.

    The file is locked until it is closed. Raises UserError, in one line, for a path that cannot be written, for a file
    that another process has locked, and for a file with anything but JSON objects or with an incomplete foreign line at
    its end. Such a file is not changed.
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
            self._file = self.path.open("a+b", buffering=0)  # so that no data remains in a buffer after a failed write
        except OSError as error:
            raise UserError(
                f"{shown}: results cannot be written there ({error.strerror}); name another file"
            ) from error
        self._index: RowIndex | None = None
        try:
            if holder := locked_by(self._file):
                raise UserError(
                    f"{shown}: {one_line(holder)} is writing to it; wait until it ends, or name another file"
                )
            self.length, self.appended = self._check(), 0
        except BaseException:
            self._close()
            raise

    @property
    def replaced(self) -> int:
        """The number of rows with a later row of the same image, reference and question; this reads all outlines."""
        return self.length - len({hash(_values(row)) for _, row in self.outlines()})

    def append(self, row: Row) -> int:
        """Write one finished row to the operating system without buffering; return the offset at which it begins.

        Raises ValueError for NaN or infinity, and OSError when the disk is full. Neither leaves a partial line.
        """
        line = data = _line(row)
        begin = self._size()
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            self._file.truncate(begin)
            raise
        self.length, self.appended = self.length + 1, self.appended + 1
        if self._index:
            self._index.add(line, orjson.loads(line))
        elif begin + len(line) >= FROM_BYTES:
            self._check()
        return begin

    def outlines(self) -> Iterator[tuple[int, Row]]:
        """Yield each current row with its offset, without its long fields (``row_index.outline``)."""
        covered = 0
        if self._index:
            covered = self._index.end
            yield from self._index.outlines()
        for offset, row in kept_rows(self.path, covered):
            yield offset, outline(row)

    def rows(self, offsets: Iterable[int]) -> Iterator[Row]:
        """Return the complete rows that begin at these offsets."""
        return rows_at(self.path, offsets)

    def read(self) -> dict[int, Row]:
        """Return all rows that the file has now, by offset and in order."""
        return dict(kept_rows(self.path))

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Replace all rows by these atomically: a crash leaves the file unchanged. The file stays locked.

        Raises ValueError for NaN or infinity, OSError when the disk is full, and UserError if another process locked
        the file while it was being replaced.
        """
        self._replace([_line(row) for row in rows])

    def compact(self, identify: Callable[[Row], Identity]) -> int:
        """Keep only the last row of each job, and append the others to ``<file>.replaced``; return how many.

        Rows with other settings are kept, so that runs with those settings find them. A row with an ``error`` replaces
        no result, and lines that are not results are kept. An incomplete row that replaces another one of its identity
        gets ``assessed_twice``, which ``resume`` reads. A crash loses no row. Raises as ``rewrite``.
        """
        last: dict[Hashable, tuple[int, bool]] = {}  # by job, the offset of the valid row, and whether it failed
        dropped: list[int] = []
        incomplete: set[Identity] = set()
        twice: set[int] = set()
        for offset, row in self.outlines():
            if (error := row.get("error")) is not None and str(error).startswith(NO_ROW):
                continue
            identity = identify(row)
            is_file = not identity.image.startswith("<")  # otherwise it is identified by its bytes only
            job = (*_job(identity), identity.run_fingerprint, is_file or identity.image_sha256)
            earlier = last.get(job)
            if earlier and error is not None and not earlier[1]:
                dropped.append(offset)
                continue
            if earlier:
                dropped.append(earlier[0])
            last[job] = offset, error is not None
            if lacking(row) == INCOMPLETE:
                twice |= {offset} if identity in incomplete else set()
                incomplete.add(identity)
        if not dropped:
            return 0
        with self.path.with_name(f"{self.path.name}.replaced").open("ab") as replaced, self.path.open("rb") as lines:
            for offset in sorted(dropped):
                lines.seek(offset)
                replaced.write(lines.readline())
            replaced.flush()
            os.fsync(replaced.fileno())
        self._replace(self._lines_without({*dropped}, twice))
        return len(dropped)

    def _lines_without(self, dropped: Collection[int], twice: Collection[int]) -> Iterator[bytes]:
        offset = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if offset not in dropped:
                    yield _line({**orjson.loads(line), "assessed_twice": True}) if offset in twice else line
                offset += len(line)

    def _replace(self, content: Iterable[bytes]) -> None:
        if os.name == "nt":  # Windows cannot replace an open file
            self._file.close()
        try:
            write_atomically(self.path, content, durable=True)
        finally:
            replaced, self._file = self._file, self.path.open("a+b", buffering=0)
            replaced.close()
        if holder := locked_by(self._file):
            raise UserError(
                f"{printable_path(self.path)}: {one_line(holder)} started to write to it; wait until it ends, then "
                "repeat the command"
            )
        self.length = self._check()

    def content(self) -> bytes:
        """Return all bytes of the open file, even if it was deleted."""
        self._file.seek(0)
        return self._file.readall()

    def put_back(self) -> bool:
        """Write the file again if it was deleted while it was open; return whether it was. Raises as ``rewrite``."""
        if self.path.exists():
            return False
        self._replace([self.content()])
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _close(self) -> None:
        self._close_index()
        self._file.close()

    def _close_index(self) -> None:
        if self._index:
            self._index.close()
            self._index = None

    def _check(self) -> int:
        """Check the rows that are not in an index, add them to the index of a large file, and repair the end.

        Return the number of all rows.
        """
        self._close_index()
        index = self._index = RowIndex(self.path) if self._size() >= FROM_BYTES else None
        number, end = (index.rows, index.end) if index else (0, 0)
        shown, line, before = printable_path(self.path), b"\n", b""
        with self.path.open("rb") as lines:
            lines.seek(end)
            for line in lines:
                row = _row(line)
                if row is None and line.endswith(b"\n"):
                    if index:
                        index.remove()
                    raise UserError(f"{shown}: line {number + 1} is not a JSON object; move or rename the file")
                if row is None and not _is_cut_row(line, before):
                    raise UserError(f"{shown}: line {number + 1} is not a row of results; move or rename the file")
                if row is None:
                    logger.warning(
                        "%s: the last line was cut short by an interruption; that row is computed again", shown
                    )
                    self._file.truncate(end)
                    return number
                number, end, before = number + 1, end + len(line), line
                if (why := str(outline(row).get("error"))).startswith(NO_ROW):
                    why = why.removeprefix(f"{NO_ROW}: ")
                    logger.warning("%s: line %d is not a row of results: %s; the line is skipped", shown, number, why)
                if index:
                    index.add(line.removesuffix(b"\n") + b"\n", row)
        if not line.endswith(b"\n"):
            self._file.write(b"\n")
        return number


def resume(
    rows: Iterable[tuple[int, Row]], wanted: Mapping[K, Identity], identify: Callable[[Row], Identity]
) -> Resumed[K]:
    """Match the rows of a file, each with its offset, to the wanted jobs; rows are read once and not kept.

    The last row with a job's identity is that job's result. A job is assessed again if its rows of the same image,
    reference and question have other bytes or settings; it is counted with the reason of the last of these rows. A job
    with an incomplete row (see ``lacking``) is assessed again each time if it has no score or answer, else only once,
    because a model that cannot do better would be asked forever. Rows with an ``error`` are not results.
    """
    results: dict[Identity, int | None] = dict.fromkeys(wanted.values())  # the offset of the last row of each
    lacks: dict[Identity, str] = {}
    incomplete: Counter[Identity] = Counter()
    others: dict[tuple[str, str | None, str], Identity] = {}
    for offset, row in rows:
        if "error" in row:
            continue
        identity = identify(row)
        if identity not in results:
            others[_job(identity)] = identity
            continue
        results[identity] = offset
        lacks.pop(identity, None)
        if lack := lacking(row):
            lacks[identity] = lack
            incomplete[identity] += (lack == INCOMPLETE) + bool(row.get("assessed_twice") or row.get("judged_twice"))
    finished: dict[K, int] = {}
    again: Counter[str] = Counter()
    for job, identity in wanted.items():
        found = results[identity]
        if found is None:
            if _job(identity) in others:
                again[_reason(others[_job(identity)], identity)] += 1
        elif identity in lacks and (lacks[identity] == UNSCORED or incomplete[identity] < 2):
            again[lacks[identity]] += 1
        else:
            finished[job] = found
    return Resumed(finished, again)


def lacking(row: Row) -> str | None:
    """Return the part that a result lacks because a model gave no usable answer, as a reason; ``None`` if complete.

    ``INCOMPLETE`` means that a step of the executor failed (``executor_evidence.failures``), or that the score comes
    from a rejected answer. A failed tool does not count, because it would fail again.
    """
    if is_unscored(row):
        return UNSCORED
    failed = (row.get("executor_evidence") or {}).get("failures")
    return INCOMPLETE if failed or row.get("probability_source") in FROM_REJECTED else None


def kept_rows(file: Path, start: int = 0) -> Iterator[tuple[int, Row]]:
    """Yield each row of a results file from the byte ``start`` on, with the offset in bytes at which the row begins.

    A truncated last line is left out.

    The file is only read: nothing is created, and a run can write to it at the same time. Raises OSError, and
    ValueError for a line that is not JSON.
    """
    offset = start
    with open(file, "rb") as lines:
        lines.seek(start)
        for line in lines:
            if line.endswith(b"\n"):
                yield offset, orjson.loads(line)
            offset += len(line)


def latest_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a results file, in order, without rows that a later row of the same job replaces.

    A row replaces earlier rows of the same image, reference and question; an ``error`` replaces no result. The number
    of replaced rows is logged as a warning, because the file has more lines than images. Raises as ``checked_rows``.
    """
    latest: dict[int, tuple[int, bool]] = {}  # by job, the offset of the valid row, and whether it failed
    total = 0
    for offset, row in checked_rows(file, lambda _: ("image", "query")):
        total += 1
        job, failed = hash(_values(row)), "error" in row
        if not failed or latest.get(job, (0, True))[1]:
            latest[job] = offset, failed
    if replaced := total - len(latest):
        logger.warning("%d of %d rows are skipped, because later rows replace them", replaced, total)
    yield from rows_at(file, sorted(offset for offset, _ in latest.values()))


def rows_at(file: Path, offsets: Iterable[int]) -> Iterator[Row]:
    """Yield the complete rows that begin at these offsets."""
    with file.open("rb") as lines:
        for offset in offsets:
            lines.seek(offset)
            yield orjson.loads(lines.readline())


def question_of(row: Row) -> str:
    """Return the question of a row, with its options unless the question already lists them (as ``Job.asked``)."""
    query, options = str(row.get("query")), row.get("options")
    return with_options(query, options) if options and isinstance(options, dict) else query


def _job(identity: Identity) -> tuple[str, str | None, str]:
    return identity.image, identity.reference, identity.query


def _values(row: Row) -> tuple[Any, ...]:
    """Return the values of a row; a later row with the same values replaces an earlier one."""
    return row.get("image"), row.get("reference"), question_of(row)


def _reason(kept: Identity, wanted: Identity) -> str:
    if kept.run_fingerprint is None:
        return NO_SETTINGS
    return OTHER_SETTINGS if kept.run_fingerprint != wanted.run_fingerprint else OTHER_BYTES


def _line(row: Row) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n".encode()


def _is_cut_row(line: bytes, before: bytes) -> bool:
    """Return whether a last line that is not JSON is a truncated row, or zero bytes that a crash left."""
    heads = (*BEGINNINGS, before[: before.find(b":") + 1])
    return any(head and line.startswith(head[: len(line)]) for head in heads) or not line.strip(b"\0")


def _row(line: bytes) -> Row | None:
    try:
        row = orjson.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


try:
    import fcntl
except ImportError:  # Windows, which has no such locks
    fcntl = None  # type: ignore[assignment]

LOCKED = (errno.EACCES, errno.EAGAIN)


def locked_by(file: FileIO) -> str | None:
    """Lock an open file until it is closed; return ``None`` on success, else the process that has locked it.

    Files on file systems without locks count as unlocked.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return _holder(os.fstat(file.fileno()).st_ino) if error.errno in LOCKED else None
    return None


def _holder(inode: int) -> str:
    """Return the process that has locked a file, if the system reports it (Linux: ``/proc/locks``)."""
    try:
        # A line: "1: FLOCK  ADVISORY  WRITE 4711 00:2d:1234 0 EOF"
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pid = next(fields[4] for fields in held if len(fields) > 5 and fields[5].endswith(f":{inode}"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (OSError, StopIteration):
        return "another process"
    return f"process {pid} ({command})" if command else f"process {pid}"
