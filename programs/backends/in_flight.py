"""How many requests a server is sent at a time: without a limit until it refuses some while it serves others.

As TCP does (additive increase, multiplicative decrease; V. Jacobson, "Congestion Avoidance and Control", 1988): when a
request is refused and one that was under way beside it is served, the number in flight is halved; each request that is
served afterwards raises it a little, by one for as many as are allowed at a time. From a refusal until it is known
whether those beside it are served, no request is sent: all that wait would be refused one after the other. A server
that refuses everything is not crowded but down, and nothing changes.
"""

import errno
import logging
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock

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
    import httpcore  # which a program without a model never loads

    return any(
        isinstance(cause, ConnectionError)
        or (isinstance(cause, httpcore.RemoteProtocolError) and "disconnected" in str(cause))
        or getattr(cause, "errno", None) in NO_MORE_CONNECTIONS
        for cause in causes(error)
    )


class InFlight:
    """The requests under way to one server; those above the limit of the moment wait, first come first served.

    Thread-safe. A caller that is interrupted gives its place up.
    """

    def __init__(self, server: str = "") -> None:
        self.server = server
        self.most = math.inf
        self.under_way = 0
        self._changed = Condition()
        self._waiting: deque[object] = deque()
        self._sent = 0  # requests are numbered from 1
        self._halved_at = 0  # the last request that was sent before the limit was halved
        self._refused_at = 0  # the last request that was under way when one was refused
        self._concurrent_at_refusal = 0  # the most that were under way when one was refused
        self._undecided = 0  # of those, how many are under way until one of them is served

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place, and hold it for one request. How the request ends, by lm15's errors, sets the limit."""
        number = self._enter()
        refused = None  # not sent, or not waited for: nothing is known of the server
        try:
            yield
            refused = False
        except lm15.LM15Error as error:
            refused = is_refused(error)
            raise
        finally:
            self._leave(number, refused)

    def _enter(self) -> int:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self._has_room())
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()  # the next may have room, too
            self._sent += 1
            self.under_way += 1
            return self._sent

    def _has_room(self) -> bool:
        return not self._undecided and self.under_way + 1 <= self.most

    def _leave(self, number: int, refused: bool | None) -> None:
        with self._changed:
            if self._undecided and number <= self._refused_at:
                self._undecided -= 1
            if number > self._halved_at and refused is not None:
                self._learn(number, refused)
            self.under_way -= 1
            self._changed.notify_all()

    def _learn(self, number: int, refused: bool) -> None:
        if refused:
            self._refused_at = self._sent
            self._concurrent_at_refusal = max(self._concurrent_at_refusal, self.under_way)
            self._undecided = self.under_way - 1
        elif number <= self._refused_at:
            self.most = max(1.0, min(self.most, self._concurrent_at_refusal) // 2)
            self._halved_at, self._refused_at, self._concurrent_at_refusal, self._undecided = self._sent, 0, 0, 0
            most = int(self.most)
            logger.info("%s refuses requests while it serves others: at most %d are sent at a time", self.server, most)
        else:
            self.most += 1 / self.most


_lock = Lock()
_servers: dict[str, InFlight] = {}


def in_flight_at(server: str) -> InFlight:
    """The requests of this process that are under way to this server, the same for every stage and run that asks it."""
    with _lock:
        return _servers.setdefault(server, InFlight(server))
