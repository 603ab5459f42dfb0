"""A model server that answers correctly, except for one fault of many.

    with faulty_server("close-in-body-once") as server:  # server.url, server.tokens, server.set("healthy")

The healthy answers (``faulty.healthy``) depend on image and question. The table of faults is in ``support/faulty``, one
file for each group of families.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from support.faulty.exchange import Question, Shared
from support.faulty.profiles import HEALTHY, PROFILES
from support.loopback import Exchange, HttpServer


class FaultyServer:
    """A running server; ``tokens`` has the true counts (input, output) of each request that was answered or failed."""

    def __init__(self, fault: str) -> None:
        self._server = HttpServer(self._answer)
        self.url = f"{self._server.address}/v1"
        self.stop = self._server.stop
        self.set(fault)

    def set(self, name: str) -> None:
        """Change to another fault, from its beginning, and close all connections."""
        self._profile, self._shared = PROFILES[name], Shared(self._server.restart)
        self._server.most = self._profile.connections
        self.tokens: list[tuple[int, int]] = []
        self._server.disconnect()

    def _answer(self, request: Exchange) -> None:
        if "messages" not in request.body:  # a list, such as that of the models, which this server does not have
            request.reply({"error": {"message": "not found"}}, "404 Not Found")
            return
        profile, shared, tokens, same = self._profile, self._shared, self.tokens, hash(request.raw)
        with shared.lock:
            arrival = shared.seen[same] = shared.seen.get(same, 0) + 1
            shared.questions += 1
            shared.in_flight += 1
            number = shared.questions
        place = (request.connection, request.stop, request.head, request.raw)
        ex = Question(*place, shared=shared, number=number, arrival=arrival)
        usage = ex.answer()["usage"]
        try:
            if profile.when(ex):
                profile.act(ex)
            else:
                ex.reply(ex.answer())
        finally:
            request.keep = ex.keep
            with shared.lock:
                shared.in_flight -= 1
                tokens.append((usage["prompt_tokens"], usage["completion_tokens"]))


@contextmanager
def faulty_server(fault: str = HEALTHY.name) -> Iterator[FaultyServer]:
    """Run a server on 127.0.0.1 until the context ends."""
    server = FaultyServer(fault)
    try:
        yield server
    finally:
        server.stop()
