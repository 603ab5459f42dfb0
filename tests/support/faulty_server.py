"""A model server that answers correctly, except for one fault of many.

    python tests/support/faulty_server.py --list [FAMILY]
    python tests/support/faulty_server.py --fault NAME [--port N] [--log FILE]

    with faulty_server("close-in-body") as server:      # in tests: server.url, server.log, server.fault = "healthy"

It uses raw sockets and the standard library only, to control every byte. The healthy answers (``faulty.healthy``)
depend on image and question. The faults are in ``support/faulty``, one file for each family.
"""

import argparse
import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from support.faulty import healthy
from support.faulty.exchange import BLOCK, Disconnected, Exchange, Profile, Shared
from support.faulty.profiles import HEALTHY, PROFILES

LARGEST_HEAD = 1 << 16


@dataclass(frozen=True)
class Entry:
    """One request as the server received it.

    ``at`` is in seconds since the start, ``tokens`` the true counts (input, output), ``affected`` whether the fault
    was applied, ``received`` and ``sent`` are in bytes.
    """

    at: float
    stage: str
    mark: str
    arrival: int
    connection: int
    affected: bool
    received: int
    sent: int
    tokens: tuple[int, int]


class FaultyServer:
    """A running server; ``fault`` may be changed while it runs, and then restarts. ``log`` is in completion order."""

    def __init__(self, fault: str, port: int = 0, log_to: TextIO | None = None) -> None:
        self.log: list[Entry] = []
        self.connections = 0
        self._log_to, self._began, self._open = log_to, time.perf_counter(), set[socket.socket]()
        self._profile, self._shared = _named(fault), Shared()
        self._shared.restart = self._restart
        self._stopped = threading.Event()
        self._listen(port)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the address as a configuration has it."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def fault(self) -> str:
        return self._profile.name

    @fault.setter
    def fault(self, name: str) -> None:
        profile = _named(name)
        self._shared.stop.set()  # ends hanging replies
        self._profile, self._shared = profile, Shared(restart=self._restart)
        self._close_connections()

    def clear(self) -> list[Entry]:
        """Return the log so far, and start a new one."""
        with self._shared.lock:
            found, self.log = self.log, []
        return found

    def stop(self) -> None:
        """Close everything."""
        self._stopped.set()
        self._shared.stop.set()
        _closed(self._listener)
        self._close_connections()
        self._thread.join(5)

    def _listen(self, port: int) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(256)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            listener = self._listener
            try:
                connection, _ = listener.accept()
            except OSError:
                self._stopped.wait(0.02)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._shared.lock:
                self.connections += 1
                number, profile, shared = self.connections, self._profile, self._shared
                self._open.add(connection)
                full = profile.connections is not None and len(self._open) > profile.connections
            if full:
                Exchange(connection, shared, b"", b"", {}, 0, 0, 0).reset()
                self._open.discard(connection)
                continue
            threading.Thread(target=self._serve, args=(connection, number, profile, shared), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int, profile: Profile, shared: Shared) -> None:
        try:
            with connection.makefile("rb", BLOCK) as stream:
                count, keep = 0, True
                while keep and not shared.stop.is_set() and (request := _read(stream)):
                    count += 1
                    keep = self._answer(connection, number, profile, shared, request, count)
        except (OSError, ValueError, Disconnected):
            pass  # the client closed the connection during a request
        finally:
            with shared.lock:
                self._open.discard(connection)
            _closed(connection)

    def _answer(
        self,
        connection: socket.socket,
        number: int,
        profile: Profile,
        shared: Shared,
        request: tuple[bytes, bytes],
        count: int,
    ) -> bool:
        head, raw = request
        ex = Exchange(connection, shared, head, raw, json.loads(raw or b"{}"), 0, 0, count)
        with shared.lock:
            ex.arrival = shared.seen[hash(raw)] = shared.seen.get(hash(raw), 0) + 1
            shared.questions += 1
            ex.number = shared.questions
            shared.in_flight += 1
        affected = profile.when(ex)
        try:
            if affected:
                profile.act(ex)
            else:
                ex.reply(ex.answer())
            return ex.keep
        finally:
            with shared.lock:
                shared.in_flight -= 1
                self._note(ex, number, affected)

    def _note(self, ex: Exchange, number: int, affected: bool) -> None:
        usage = ex.answer()["usage"]
        entry = Entry(
            round(time.perf_counter() - self._began, 3),
            ex.stage,
            healthy.mark_of(ex.body),
            ex.arrival,
            number,
            affected,
            len(ex.head) + len(ex.raw),
            ex.sent,
            (usage["prompt_tokens"], usage["completion_tokens"]),
        )
        self.log.append(entry)
        if self._log_to:
            print(json.dumps(asdict(entry)), file=self._log_to, flush=True)

    def _restart(self, seconds: float) -> None:
        """Close all connections, and listen at the same address again after this many seconds."""
        _closed(self._listener)
        self._close_connections()
        self._stopped.wait(seconds)
        if not self._stopped.is_set():
            self._listen(self.port)

    def _close_connections(self) -> None:
        with self._shared.lock:
            connections = [*self._open]
        for connection in connections:
            _closed(connection)


@contextmanager
def faulty_server(fault: str = "healthy", port: int = 0, log_to: TextIO | None = None) -> Iterator[FaultyServer]:
    """Run a server on 127.0.0.1 until the context ends. Raises LookupError for an unknown fault."""
    server = FaultyServer(fault, port, log_to)
    try:
        yield server
    finally:
        server.stop()


def _named(name: str) -> Profile:
    if name == HEALTHY.name:
        return HEALTHY
    if name not in PROFILES:
        raise LookupError(f"no fault is named {name!r}; --list shows all")
    return PROFILES[name]


def _read(stream: Any) -> tuple[bytes, bytes] | None:
    """Return head and body of the next request, ``None`` at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(LARGEST_HEAD)
        if not line or len(head) > LARGEST_HEAD:
            return None
        head += line
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head, stream.read(int(lengths[0].partition(b":")[2])) if lengths else b""


def _closed(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fault", default=HEALTHY.name, metavar="NAME")
    parser.add_argument("--list", nargs="?", const="", metavar="FAMILY", help="print the faults, and leave")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", metavar="FILE", help="one JSON line for each request")
    args = parser.parse_args()
    if args.list is not None:
        shown = [each for each in PROFILES.values() if args.list in ("", each.family)]
        for each in shown:
            print(f"{each.family:10} {each.name:34} {each.what}")
        print(f"{len(shown)} faults")
        return
    try:
        _named(args.fault)
    except LookupError as error:
        parser.error(str(error))
    with contextlib.ExitStack() as stack:
        log_to = stack.enter_context(open(args.log, "a", encoding="utf-8")) if args.log else None
        server = stack.enter_context(faulty_server(args.fault, args.port, log_to))
        print(f"{server.url}  {args.fault}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
