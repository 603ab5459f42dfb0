"""The manifest of batches: a SQLite file beside the results that records requests, batches and answers.

A batch is ``intended`` (its requests are in a local file), ``uploaded`` (the provider has the file), ``sent`` (it has a
handle), ``ended``, and ``collected`` (its answers are stored, and its unanswered requests are detached from it). Each
change is on disk before the next step begins, so that a later process can continue after any interruption.

A request without a batch and without an answer is sent with the next batch.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from threading import RLock

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import make_private, printable_path

OPEN = ("intended", "uploaded", "sent", "ended")
ALL = (*OPEN, "collected")
SCHEMA = """
CREATE TABLE IF NOT EXISTS batch (
  n INTEGER PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, api_base TEXT, key_env TEXT, state TEXT NOT NULL,
  requests INTEGER NOT NULL, bytes INTEGER NOT NULL, file TEXT, handle TEXT, message TEXT NOT NULL DEFAULT '',
  made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS request (
  id TEXT PRIMARY KEY, batch INTEGER, tries INTEGER NOT NULL, highest REAL, usd REAL, status INTEGER, answer BLOB);
CREATE INDEX IF NOT EXISTS request_of ON request (batch);
CREATE TABLE IF NOT EXISTS measured (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Batch:
    """One batch.

    ``backend``, ``api_base`` and ``key_env`` are as in a configuration; ``message`` is the provider's message about its
    end.
    """

    n: int
    name: str
    backend: str
    api_base: str | None
    key_env: str | None
    state: str
    requests: int
    bytes: int
    file: str | None
    handle: str | None
    message: str
    made: str


@dataclass(frozen=True)
class Request:
    """A request. ``batch`` is the batch that it waits for or that answered it, ``status`` the answer's HTTP status."""

    id: str
    batch: int | None
    tries: int
    highest: float | None
    usd: float | None
    status: int | None
    answer: bytes | None

    @property
    def content(self) -> bytes:
        """The body of the answer."""
        return zlib.decompress(self.answer or b"")


FIELDS = ", ".join(field.name for field in fields(Batch))


class Manifest:
    """The manifest file of a run, thread-safe. Unless it is ``shared``, it is locked: other processes get UserError."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        make_private(folder)
        self.folder = folder
        self._lock, self._guard = RLock(), sqlite3.connect(folder / "lock", timeout=0, isolation_level=None)
        if not shared:
            try:
                self._guard.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise UserError(
                    f"{printable_path(folder)}: another process uses these batches; wait until it ends, or stop it"
                ) from error
        try:
            self._rows = sqlite3.connect(folder / "manifest.sqlite", check_same_thread=False, timeout=30)
            self._rows.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {SCHEMA}")
        except sqlite3.DatabaseError as error:
            raise UserError(f"{printable_path(folder)}: the list of batches cannot be read ({error})") from error
        (folder / "manifest.sqlite").chmod(0o600)

    def close(self) -> None:
        """Write pending changes, and unlock."""
        with self._lock:
            self._rows.commit()
            self._rows.close()
            self._guard.close()

    def request(self, id: str) -> Request | None:
        """Return a request by its id."""
        with self._lock:
            row = self._rows.execute("SELECT * FROM request WHERE id = ?", (id,)).fetchone()
        return Request(*row) if row else None

    def batches(self, states: Collection[str] = OPEN) -> list[Batch]:
        """Return the batches in these states, the oldest first."""
        marks = ",".join("?" * len(states))
        with self._lock:
            rows = self._rows.execute(f"SELECT {FIELDS} FROM batch WHERE state IN ({marks}) ORDER BY n", tuple(states))
            return [Batch(*row) for row in rows]

    def waiting(self, n: int | None = None) -> dict[str, int]:
        """Return the unanswered requests of this batch, or of all batches, and how often each was sent."""
        which = "batch IS NOT NULL" if n is None else "batch = ?"
        with self._lock:
            cursor = self._rows.execute(
                f"SELECT id, tries FROM request WHERE {which} AND answer IS NULL", () if n is None else (n,)
            )
            return dict(cursor.fetchall())

    def spent(self) -> tuple[int, float, dict[str, float | None]]:
        """Return the number of requests sent, the known cost, and the highest cost of each request without a price."""
        with self._lock:
            sums = "SELECT coalesce(sum(tries), 0), coalesce(sum(usd), 0) FROM request"
            calls, usd = self._rows.execute(sums).fetchone()
            unknown = self._rows.execute("SELECT id, highest FROM request WHERE usd IS NULL AND batch IS NOT NULL")
            return calls, usd, dict(unknown.fetchall())

    def intend(self, batch: Mapping[str, object], requests: Mapping[str, tuple[int, float | None]]) -> int:
        """Record a batch before it is sent, with its requests, their tries and highest prices; return its number."""
        with self._lock, self._rows:
            names = ", ".join(batch)
            n = self._rows.execute(
                f"INSERT INTO batch ({names}) VALUES ({', '.join('?' * len(batch))})", tuple(batch.values())
            ).lastrowid
            assert n is not None
            self._rows.executemany(
                "INSERT INTO request (id, batch, tries, highest) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "batch = excluded.batch, tries = excluded.tries, highest = excluded.highest, usd = NULL",
                [(id, n, tries, highest) for id, (tries, highest) in requests.items()],
            )
        return n

    def update(self, n: int, **changes: str | None) -> None:
        """Change fields of a batch."""
        with self._lock, self._rows:
            names = ", ".join(f"{name} = ?" for name in changes)
            self._rows.execute(f"UPDATE batch SET {names} WHERE n = ?", (*changes.values(), n))

    def keep(self, n: int, answers: Iterable[tuple[str, int, bytes]]) -> None:
        """Store answers (id, status, body) to requests of a batch; the first of several answers to one counts."""
        with self._lock, self._rows:
            self._rows.executemany(
                "UPDATE request SET status = ?, answer = ? WHERE id = ? AND batch = ? AND answer IS NULL",
                [(status, zlib.compress(body), id, n) for id, status, body in answers],
            )

    def release(self, n: int, *, counted: bool = True) -> None:
        """Detach the unanswered requests from this batch; unless ``counted``, the try does not count."""
        with self._lock, self._rows:
            self._rows.execute(
                "UPDATE request SET batch = NULL, tries = tries - ? WHERE batch = ? AND answer IS NULL",
                (0 if counted else 1, n),
            )

    def settle(self, id: str, usd: float | None) -> None:
        """Record the cost of an answer; it is written to disk with the next change of a batch."""
        with self._lock:
            self._rows.execute("UPDATE request SET usd = ? WHERE id = ?", (usd, id))

    def forget(self, ids: Iterable[str]) -> None:
        """Delete answers, so that a later run sends the requests again; keep their cost."""
        with self._lock, self._rows:
            self._rows.executemany(
                "UPDATE request SET id = id || ' of ' || rowid, answer = x'' WHERE id = ?", [(id,) for id in ids]
            )

    def forget_errors(self) -> None:
        """Delete answers that are errors."""
        with self._lock:
            failed = self._rows.execute("SELECT id FROM request WHERE status >= 400").fetchall()
        self.forget(id for (id,) in failed)

    def measured(self, key: str) -> str | None:
        """Return the stored result of a tool call; see ``tools.tool.KeptCalls``."""
        with self._lock:
            row = self._rows.execute("SELECT value FROM measured WHERE key = ?", (_digest(key),)).fetchone()
        return row[0] if row else None

    def keep_measured(self, key: str, value: str) -> None:
        """Store the result of a tool call; it is written to disk with the next change of a batch."""
        with self._lock:
            self._rows.execute("INSERT OR REPLACE INTO measured VALUES (?, ?)", (_digest(key), value))

    def answered(self) -> dict[int, int]:
        """Return how many requests of each batch are answered."""
        with self._lock:
            return dict(
                self._rows.execute("SELECT batch, count(*) FROM request WHERE answer IS NOT NULL GROUP BY batch")
            )


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
