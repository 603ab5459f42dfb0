"""Store results on disk, one JSON line each, and find results that a later run can reuse.

The :class:`Identity` of a row is its image (path and bytes), its reference (path and bytes), its question and its
settings. ``assess --jsonl --resume`` and ``evaluate`` use the same three steps::

    with ResultsFile(path) as results:                          # repairs a last line that was cut short
        resumed = resume(results.outlines(), wanted, identify)  # wanted: {job: its Identity}; identify: row -> Identity
        ...                                                     # assess jobs that are not in resumed.finished
        results.append_better(row, resumed.incomplete.get(job))

The file is read once. Its rows stay on disk and are identified by a number; an outline of each stays in memory (about
1 KB), with the byte offset at which the row begins. If another program replaces, deletes or changes the file during a
run, the run continues in the file that has the name then (see ``ResultsFile.keep_up``).

If a job has several rows, readers take the last one (see :func:`latest_rows`), and ``ResultsFile.drop_replaced``
removes the others at the end of a run. The last row is also the best: if a job that is assessed again gets a worse
result, its earlier row is appended once more (see :func:`better`). For a million images, use shards (``scale``).
"""

import errno
import itertools
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import orjson

from agenticiqa.configs.user_files import open_regular
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import make_folder, one_line, printable_path, write_atomically
from agenticiqa.programs.questions.options import with_options
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.result_row import Row, checked_rows, fault_of
from agenticiqa.signatures.types import FROM_REJECTED, PARSING_FAILED

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

BEGINNINGS = b'{"image": ', b'{"name": ', b'{"tool": '  # rows of assess; evaluate and optimize; calibrate

OTHER_SETTINGS = "of another configuration"
OTHER_BYTES = "of an image or reference that has changed"
UNSCORED = "without a score or an answer"
INCOMPLETE = "without a usable model answer in one step"

IN_OUTLINE = (
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
    "error",
)
OF_THE_ATTEMPT = ("usage", "usage_by_stage", "timings_ms", "map")  # fields that describe an attempt, not its result


class Identity(NamedTuple):
    """The inputs that a result belongs to; a field that the caller does not compare is equal in all identities.

    ``image`` and ``reference`` are names as the caller compares them (absolute paths, or names in a labels file). The
    hashes are SHA-256 in hex (``None`` if the file cannot be read). ``query`` is the question with its options (see
    ``question_of``). ``run_fingerprint`` is the fingerprint of the settings (``batch.plan_run``).
    """

    image: str
    image_sha256: str | None
    reference: str | None
    reference_sha256: str | None
    query: str
    run_fingerprint: str | None


@dataclass(frozen=True)
class Resumed(Generic[K]):
    """The reusable results of a file.

    Attributes:
        finished: The number of the valid row of each job that needs no other.
        again: The number of jobs that are assessed again, by reason.
        incomplete: The number of the row of each job that is assessed again because this row is incomplete. It stays
            the valid row unless the new one is at least as good.
    """

    finished: dict[K, int]
    again: Counter[str]
    incomplete: dict[K, int] = field(default_factory=dict)


class ResultsFile:
    """An append-only file of JSON lines, which is created with its folders if it does not exist.

    Opening the file repairs the end that an interrupted run can leave: a truncated last line is dropped (that row was
    not finished), and the next row starts on a new line. ``appended`` is the number of rows written since the file was
    opened, and ``lost`` the number of rows that another program removed.

    The file is locked until it is closed. Raises UserError, in one line, for a path that cannot be written, for a file
    that another process has locked, and for a file with anything but JSON objects or with an incomplete foreign line at
    its end. Such a file is not changed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.appended = self.lost = 0
        self._numbers = itertools.count()
        self._rows: dict[int, tuple[int, Row]] = {}  # the offset and the outline of each row, in the order of the file
        self._end = 0  # offset of the next row
        label = printable_path(path)
        try:
            if self.path.exists() and not self.path.is_file():
                kind = "a folder" if self.path.is_dir() else "a device"
                raise UserError(f"{label}: expected a file to write results to, found {kind}; name another file")
            make_folder(self.path.parent)
            self._file = self._locked()
        except OSError as error:
            raise UserError(
                f"{label}: results cannot be written there ({error.strerror}); name another file"
            ) from error
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self._rows)

    @property
    def replaced(self) -> int:
        """The number of rows with a later row of the same image, reference and question."""
        return self.length - len({_values(row) for _, row in self.outlines()})

    def append(self, row: Row) -> int:
        """Write one finished row to the operating system without buffering; return its number.

        Raises ValueError for NaN or infinity, and OSError when the disk is full. Neither leaves a partial line.
        """
        line = _line(row)
        self.keep_up()
        self._write(line)
        self.appended += 1
        return self._add(self._end - len(line), outline(orjson.loads(line)))

    def keep_up(self) -> None:
        """Continue in the file that has the name now, if another program replaced, deleted or changed this one.

        Rows that the new file lacks are written to it. If it is no file of results, or another process has locked it,
        it stays as it is, and the results continue in a new file beside it. One line on stderr says so. Only rows that
        were removed from the same file are ``lost``. Raises OSError.
        """
        held, named = os.fstat(self._file.fileno()), _status(self.path)
        is_same = named is not None and os.path.samestat(held, named)
        if is_same and held.st_size == self._end:
            return
        if fcntl is not None:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)  # else this process could not open the file again
        now = self._opened_again()
        try:
            rows, copied, lost = self._moved_to(now)
        except OSError:
            now._file.close()
            raise
        what = "changed" if is_same else "deleted" if named is None else "replaced"
        text = f"{printable_path(self.path)}: another program {what} the file during the run"
        if now.path != self.path:
            text += f"; results continue in {printable_path(now.path)}"
        if copied:
            text += f"; rows written again: {copied}"
        if lost:
            text += f"; rows lost: {lost}, which a later run assesses again"
        if lost or copied or not is_same:  # otherwise the same file has further rows
            logger.log(logging.ERROR if lost or now.path != self.path else logging.WARNING, "%s", text)
        self._file.close()
        self.path, self._file, self._rows, self._end = now.path, now._file, rows, now._end
        self.lost += lost

    def _opened_again(self) -> "ResultsFile":
        """Return the file that has the name now or, if results cannot be written to it, a new one beside it."""
        with suppress(UserError):
            return ResultsFile(self.path)
        names = (self.path.with_stem(f"{self.path.stem}-{number}") for number in itertools.count(2))
        try:
            return ResultsFile(next(path for path in names if not path.exists()))
        except UserError as error:
            raise OSError(errno.EACCES, "its folder cannot be written") from error

    def _moved_to(self, now: "ResultsFile") -> tuple[dict[int, tuple[int, Row]], int, int]:
        """Write the rows that another file lacks to it; return its rows by number, and how many were copied and lost.

        Rows of this file keep their numbers. Rows are the same if their outlines are.
        """
        there: dict[bytes, list[int]] = {}
        for offset, row in now._rows.values():
            there.setdefault(orjson.dumps(row), []).append(offset)
        numbers, copied, lost = dict[int, int](), 0, 0
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            for number, (offset, row) in self._rows.items():
                if same := there.get(orjson.dumps(row)):
                    numbers[same.pop(0)] = number
                    continue
                lines.seek(offset)
                line = lines.readline()
                if (kept := _row(line)) is None or outline(kept) != row:
                    lost += 1
                    continue
                numbers[now._end] = number
                now._add(now._end, row)
                now._write(line)
                copied += 1
        rows = {
            numbers[offset] if offset in numbers else next(self._numbers): (offset, row)
            for offset, row in now._rows.values()
        }
        return rows, copied, lost

    def _write(self, line: bytes) -> None:
        """Write a complete line at the end. Raises OSError, without a partial line."""
        data = line
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            self._file.truncate(self._end)
            raise
        self._end += len(line)

    def _add(self, offset: int, row: Row) -> int:
        """Keep the outline of a row, and return the number of the row."""
        number = next(self._numbers)
        self._rows[number] = offset, row
        return number

    def append_better(self, row: Row, earlier: int | None) -> int:
        """Append a row; return the number of the valid row of its job.

        ``earlier`` is the number of the incomplete row of the same job, if there is one. If that row is better, it is
        appended again instead. An ``error`` does not replace it and is appended as it is.
        """
        if earlier is None:
            return self.append(row)
        if "error" in row:
            self.append(row)
            return earlier
        return self.append(self.better(row, earlier))

    def better(self, row: Row, earlier: int | None) -> Row:
        """Return the better of a new row and the one with the number ``earlier``, if there is one (see ``better``)."""
        if earlier not in self._rows:
            return row
        best = better(next(self.rows([earlier])), row)
        if best is not row:
            logger.info("%s: the new result is worse than the earlier one, which stays", best.get("image"))
        return best

    def outlines(self) -> Iterator[tuple[int, Row]]:
        """Yield each row with its number, without its long fields (see ``outline``)."""
        yield from ((number, row) for number, (_, row) in self._rows.items())

    def failed(self) -> set[object]:
        """Return the names of images that failed in a run of ``evaluate``."""
        return {row.get("name") for _, row in self.outlines() if "error" in row}

    def rows(self, numbers: Iterable[int]) -> Iterator[Row]:
        """Return the complete rows with these numbers. Raises UserError for a row that another program removed."""
        try:
            return rows_at(self.path, [self._rows[number][0] for number in numbers])
        except KeyError:
            raise UserError(
                f"{printable_path(self.path)}: another program removed rows during the run; run the same command again"
            ) from None

    def drop_replaced(self) -> int:
        """Rewrite the file without rows that a later row replaces, if there are any; return how many.

        A row replaces earlier rows of the same image, reference, question and settings. Rows with other settings are
        kept, so that runs with those settings find them. So are a second incomplete row and the one before it, because
        ``resume`` counts them, rows with an ``error``, and lines that are not results. The file is replaced atomically:
        a crash or a full disk leaves it unchanged. Raises OSError, and UserError if another process locked the file
        while it was being replaced.
        """
        self.keep_up()
        latest: dict[Hashable, tuple[int, bool]] = {}  # the number of a job's last row, and whether it is incomplete
        dropped: set[int] = set()
        for number, row in self.outlines():
            if "error" in row:
                continue
            from_file = not str(row.get("image")).startswith("<")  # otherwise it is identified by its bytes only
            job = (*_values(row), row.get("run_fingerprint"), from_file or row.get("image_sha256"))
            is_incomplete = lacking(row) == INCOMPLETE
            before, was_incomplete = latest.get(job, (None, False))
            if before is not None and not (is_incomplete and was_incomplete):
                dropped.add(before)
            latest[job] = number, is_incomplete
        if dropped:
            self._rewrite_without(dropped)
        return len(dropped)

    def _rewrite_without(self, dropped: Collection[int]) -> None:
        rows: dict[int, tuple[int, Row]] = {}
        end = 0

        def kept() -> Iterator[bytes]:
            nonlocal end
            with self.path.open("rb") as lines:
                for (number, (_, row)), line in zip(self._rows.items(), lines, strict=True):
                    if number not in dropped:
                        rows[number] = end, row
                        end += len(line)
                        yield line

        if os.name == "nt":  # Windows cannot replace an open file
            self._file.close()
        try:
            write_atomically(self.path, kept(), durable=True)
        finally:
            self._file.close()
            self._file = self._locked()
        self._rows, self._end = rows, end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:  # it is closed after ``drop_replaced`` if another process locked the new file first
            with suppress(OSError):
                self.keep_up()
            self._file.close()

    def _locked(self) -> FileIO:
        """Open and lock the file."""
        file = self.path.open("a+b", buffering=0)  # no buffer, which would hold data after a failed write
        if holder := locked_by(file):
            file.close()
            raise UserError(
                f"{printable_path(self.path)}: {one_line(holder)} is writing to it; wait until it ends, or name "
                "another file"
            )
        return file

    def _read(self) -> None:
        """Keep the outline of each row, after checking the rows and repairing the end."""
        label, line, before = printable_path(self.path), b"\n", b""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                row = _row(line)
                if row is None and line.endswith(b"\n"):
                    raise UserError(f"{label}: line {number} is not a JSON object; move or rename the file")
                if row is None and not _is_cut_row(line, before):
                    raise UserError(f"{label}: line {number} is not a row of results; move or rename the file")
                if row is None:
                    logger.warning(
                        "%s: the last line was cut short by an interruption; that row is computed again", label
                    )
                    self._file.truncate(self._end)
                    return
                kept = outline(row)
                self._add(self._end, kept)
                if "no_row" in kept:
                    sentence = "%s: line %d is not a row of results: %s; the line is skipped"
                    logger.warning(sentence, label, number, kept["no_row"])
                self._end, before = self._end + len(line), line
        if not line.endswith(b"\n"):
            self._write(b"\n")


def outline(row: Row) -> Row:
    """Return a row without its long fields: its identity, and the fields that ``lacking`` reads.

    The outline of an invalid row (``result_row``) has only the reason, as its ``error`` and as ``no_row``.
    """
    fields = {key: row[key] for key in IN_OUTLINE if key in row}
    if row.get("quality_reasoning") == PARSING_FAILED:
        fields["quality_reasoning"] = PARSING_FAILED
    if why := fault_of(fields):
        return {"error": why, "no_row": why}
    evidence = row.get("executor_evidence")
    if isinstance(evidence, dict) and evidence.get("failures"):
        fields["executor_evidence"] = {"failures": evidence["failures"]}
    return fields


def resume(
    rows: Iterable[tuple[int, Row]], wanted: Mapping[K, Identity], identify: Callable[[Row], Identity]
) -> Resumed[K]:
    """Match the rows of a file, each with its number, to the wanted jobs; rows are read once and not kept.

    The last row with a job's identity is that job's result. A job is assessed again if its rows of the same image,
    reference and question have other bytes or settings; it is counted with the reason of the last of these rows. A job
    with an incomplete row (see ``lacking``) is assessed again each time if it has no score or answer, else only once,
    because a model that cannot do better would be asked forever: the second row is final, also if it repeats the first.
    Rows with an ``error`` are not results.
    """
    results: dict[Identity, int | None] = dict.fromkeys(wanted.values())  # the number of the last row of each
    lacks: dict[Identity, str] = {}
    incomplete: Counter[Identity] = Counter()
    others: dict[tuple[str, str | None, str], Identity] = {}
    for number, row in rows:
        if "error" in row:
            continue
        identity = identify(row)
        if identity not in results:
            others[_job(identity)] = identity
            continue
        results[identity] = number
        lacks.pop(identity, None)
        if lack := lacking(row):
            lacks[identity] = lack
            incomplete[identity] += lack == INCOMPLETE
    finished: dict[K, int] = {}
    kept: dict[K, int] = {}
    again: Counter[str] = Counter()
    for job, identity in wanted.items():
        latest = results[identity]
        if latest is None:
            if _job(identity) in others:
                again[_reason(others[_job(identity)], identity)] += 1
        elif identity in lacks and (lacks[identity] == UNSCORED or incomplete[identity] < 2):
            again[lacks[identity]] += 1
            if lacks[identity] == INCOMPLETE:
                kept[job] = latest
        else:
            finished[job] = latest
    return Resumed(finished, again, kept)


def lacking(row: Row) -> str | None:
    """Return the part that a result lacks because a model gave no usable answer, as a reason; ``None`` if complete.

    ``INCOMPLETE`` means that a step of the executor failed (``executor_evidence.failures``), or that the score comes
    from a rejected answer. A failed tool does not count, because it would fail again.
    """
    if is_unscored(row):
        return UNSCORED
    failed = (row.get("executor_evidence") or {}).get("failures")
    return INCOMPLETE if failed or row.get("probability_source") in FROM_REJECTED else None


def better(earlier: Row, new: Row) -> Row:
    """Return the better of two results of one job; of equally good ones, the new one.

    A result with a score or an answer is better than one without, then the better source of its score counts (in the
    order of ``FROM_REJECTED``), then the smaller number of failed steps. If the earlier result is better, it gets the
    new attempt's usage and times, so that the rows of a file add up to the cost of all attempts.
    """
    if _worth(new) >= _worth(earlier):
        return new
    return {**earlier, **{name: new[name] for name in OF_THE_ATTEMPT if name in new}}


def _worth(row: Row) -> tuple[bool, int, int]:
    """Return how good a result is: a better result has a larger tuple, and a complete one has the largest."""
    worst_first = FROM_REJECTED[::-1]
    source = row.get("probability_source")
    rank = worst_first.index(source) if source in worst_first else len(worst_first)
    return not is_unscored(row), rank, -len((row.get("executor_evidence") or {}).get("failures") or ())


def kept_rows(file: Path) -> Iterator[tuple[int, Row]]:
    """Yield each row of a results file, with the offset in bytes at which it begins, without a truncated last line.

    The file is only read: nothing is created, and a run can write to it at the same time. Raises OSError, and
    ValueError for a line that is not JSON.
    """
    offset = 0
    with open_regular(file) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield offset, orjson.loads(line)
            offset += len(line)


def latest_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a results file, in order, without rows that a later row of the same job replaces.

    A row replaces earlier rows of the same image, reference and question; an ``error`` replaces no result. The number
    of replaced rows is logged as a warning, because the file has more lines than images. Raises as ``checked_rows``.
    """
    latest: dict[int, tuple[int, bool]] = {}  # the offset of the valid row of each job, and whether it failed
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


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _job(identity: Identity) -> tuple[str, str | None, str]:
    return identity.image, identity.reference, identity.query


def _values(row: Row) -> tuple[Any, ...]:
    """Return the values of a row; a later row with the same values replaces an earlier one."""
    return row.get("image"), row.get("reference"), question_of(row)


def _reason(kept: Identity, wanted: Identity) -> str:
    return OTHER_SETTINGS if kept.run_fingerprint != wanted.run_fingerprint else OTHER_BYTES


def _line(row: Row) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n".encode("utf-8", "replace")


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
