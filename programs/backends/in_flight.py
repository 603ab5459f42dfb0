"""How many requests a server is sent at a time: without a limit until it refuses some while it serves others.

As TCP does (additive increase, multiplicative decrease; V. Jacobson, "Congestion Avoidance and Control", 1988): when a
request is refused and one that was under way beside it is served, the number in flight is halved; each request that is
served afterwards raises it a little, by one for as many as are allowed at a time. From a refusal until it is known
whether those beside it are served, no request is sent: all that wait would be refused one after the other. A server
that refuses everything is not crowded but down, and nothing changes.
"""

import asyncio
import errno
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Lock

import aiohttp
from dspy import lm15

from agenticiqa.programs.backends.failures import causes, ran_out_of_time

logger = logging.getLogger(__name__)

BUSY = frozenset({429, 503, 529})
NO_MORE_CONNECTIONS = frozenset({errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.EMFILE})


def is_refused(error: BaseException) -> bool:
    """Whether a server may have failed a request because of too many: busy, or a connection refused or reset."""
    if isinstance(error, lm15.RateLimitError) or getattr(error, "status", None) in BUSY:
        return True
    if not isinstance(error, lm15.TransportError) or ran_out_of_time(error):
        return False
    return any(
        isinstance(cause, ConnectionError | aiohttp.ServerDisconnectedError)
        or getattr(cause, "errno", None) in NO_MORE_CONNECTIONS
        for cause in causes(error)
    )


class InFlight:
    """The requests under way to one server; those above the limit of the moment wait, first come first served.

    Thread-safe, and for sync and async callers at once. Waiting costs no time of a processor. A caller that is
    interrupted or canceled gives its place up.
    """

    def __init__(self, server: str = "") -> None:
        self.server = server
        self.most = math.inf
        self.under_way = 0
        self._lock = Lock()
        self._waiting: deque[Future[int]] = deque()
        self._sent = 0  # requests are numbered from 1
        self._halved_at = 0  # the last request that was sent before the limit was halved
        self._refused_at = 0  # the last request that was under way when one was refused
        self._beside = 0  # the most that were under way when one was refused
        self._undecided = 0  # of those, how many are under way until one of them is served

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place, and hold it for one request. How the request ends, by lm15's errors, sets the limit."""
        place = self._enter()
        try:
            number = place.result()
        except BaseException:
            self._give_up(place)
            raise
        with self._held(number):
            yield

    @asynccontextmanager
    async def aplace(self) -> AsyncIterator[None]:
        """``place``, async."""
        place = self._enter()
        try:
            number = await asyncio.wrap_future(place)
        except BaseException:
            self._give_up(place)
            raise
        with self._held(number):
            yield

    @contextmanager
    def _held(self, number: int) -> Iterator[None]:
        try:
            yield
        except lm15.LM15Error as error:
            self._leave(number, refused=is_refused(error))
            raise
        except BaseException:  # not sent, or not waited for: nothing is known of the server
            self._leave(number, refused=None)
            raise
        self._leave(number, refused=False)

    def _enter(self) -> "Future[int]":
        place: Future[int] = Future()
        with self._lock:
            self._waiting.append(place)
            self._admit()
        return place

    def _give_up(self, place: "Future[int]") -> None:
        with self._lock, suppress(ValueError):  # it is not there when the place was given at the same moment
            self._waiting.remove(place)
            return
        if not place.cancelled():
            self._leave(place.result(), refused=None)

    def _leave(self, number: int, refused: bool | None) -> None:
        halved = False
        with self._lock:
            if self._undecided and number <= self._refused_at:
                self._undecided -= 1
            if number > self._halved_at and refused is not None:
                if refused:
                    self._refused_at, self._beside = self._sent, max(self._beside, self.under_way)
                    self._undecided = self.under_way - 1
                elif number <= self._refused_at:
                    halved = True
                    self.most = max(1.0, min(self.most, self._beside) // 2)
                    self._halved_at, self._refused_at, self._beside, self._undecided = self._sent, 0, 0, 0
                else:
                    self.most += 1 / self.most
            self.under_way -= 1
            most = int(self.most) if halved else 0
            self._admit()
        if halved:
            logger.info("%s refuses requests while it serves others: at most %d are sent at a time", self.server, most)

    def _admit(self) -> None:
        while self._waiting and not self._undecided and self.under_way + 1 <= self.most:
            place = self._waiting.popleft()
            if place.set_running_or_notify_cancel():
                self._sent += 1
                self.under_way += 1
                place.set_result(self._sent)


_lock = Lock()
_servers: dict[str, InFlight] = {}


def in_flight_at(server: str) -> InFlight:
    """The requests of this process that are under way to this server, the same for every stage and run that asks it."""
    with _lock:
        return _servers.setdefault(server, InFlight(server))
