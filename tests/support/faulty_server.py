"""A model server that answers correctly, except for one fault of many.

    with faulty_server("close-in-body-once") as server:  # server.url, server.tokens, server.set("healthy")

It uses raw sockets and the standard library only, to control every byte. The healthy answers (``faulty.healthy``)
depend on image and question. The table of faults is in ``support/faulty``, one file for each group of families.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.faulty.exchange import BLOCK, Disconnected, Exchange, Profile, Shared
from support.faulty.profiles import HEALTHY, PROFILES

LARGEST_HEAD = 1 << 16


class FaultyServer:
    """A running server; ``tokens`` has the true counts (input, output) of each request that was answered or failed."""

    def __init__(self, fault: str = HEALTHY.name) -> None:
        self._open = set[socket.socket]()
        self._stopped = threading.Event()
        self._shared = Shared()
        self.set(fault)
        self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def set(self, name: str) -> None:
        """Change to another fault, from its beginning, and close all connections."""
        self._shared.stop.set()  # ends hanging replies
        self._profile, self._shared = PROFILES[name], Shared(restart=self._restart)
        self.tokens: list[tuple[int, int]] = []
        self._close_connections()

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
            try:
                connection, _ = self._listener.accept()
            except OSError:
                self._stopped.wait(0.02)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            profile, shared = self._profile, self._shared
            with shared.lock:
                self._open.add(connection)
                full = profile.connections is not None and len(self._open) > profile.connections
            if full:
                Exchange(connection, shared, b"", b"", {}).reset()
                self._open.discard(connection)
                continue
            threading.Thread(target=self._serve, args=(connection, profile, shared), daemon=True).start()

    def _serve(self, connection: socket.socket, profile: Profile, shared: Shared) -> None:
        try:
            with connection.makefile("rb", BLOCK) as stream:
                while not shared.stop.is_set() and (request := _read(stream)):
                    if not self._answer(connection, profile, shared, *request):
                        break
        except (OSError, ValueError, Disconnected):
            pass  # the client closed the connection during a request
        finally:
            with shared.lock:
                self._open.discard(connection)
            _closed(connection)

    def _answer(self, connection: socket.socket, profile: Profile, shared: Shared, head: bytes, raw: bytes) -> bool:
        """Answer one request, and return whether the connection is kept."""
        ex = Exchange(connection, shared, head, raw, json.loads(raw or b"{}"))
        if "messages" not in ex.body:  # a list, such as that of the models, which this server does not have
            ex.reply({"error": {"message": "not found"}}, "404 Not Found")
            return ex.keep
        usage = ex.answer()["usage"]
        tokens = self.tokens
        with shared.lock:
            ex.arrival = shared.seen[hash(raw)] = shared.seen.get(hash(raw), 0) + 1
            shared.questions += 1
            ex.number = shared.questions
            shared.in_flight += 1
        try:
            if profile.when(ex):
                profile.act(ex)
            else:
                ex.reply(ex.answer())
            return ex.keep
        finally:
            with shared.lock:
                shared.in_flight -= 1
                tokens.append((usage["prompt_tokens"], usage["completion_tokens"]))

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
def faulty_server(fault: str = HEALTHY.name) -> Iterator[FaultyServer]:
    """Run a server on 127.0.0.1 until the context ends."""
    server = FaultyServer(fault)
    try:
        yield server
    finally:
        server.stop()


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
