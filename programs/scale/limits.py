"""Apply the limits of a run on a cluster: workers ask one actor, which counts all requests, before each request."""

import time
from collections import defaultdict
from threading import Thread
from typing import Any

from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, RunLimits

GO, WAIT, HALTED = "go", "wait", "halted"
ASK_AGAIN = (0.02, 1.0)  # seconds between two calls of the actor, at first and at most
CHECK_SECONDS = 1.0  # seconds between two checks of a worker whether the run has ended


class LimitActor:
    """The only counter of a cluster, as an actor of Ray that runs its methods one after the other.

    ``in_flight`` limits the requests under way to each server. Requests that a stopped worker did not settle count
    with their highest price once another worker replaces it.
    """

    def __init__(
        self, max_calls: int | None = None, max_usd: float | None = None, in_flight: int | None = None
    ) -> None:
        self.limits = RunLimits(Limits(max_calls=max_calls, max_usd=max_usd))
        self.in_flight = in_flight
        self._admitted: dict[str, list[tuple[str, float | None]]] = defaultdict(list)

    def began(self, worker: str) -> None:
        """Register a worker, which may replace a stopped one."""
        for _, highest in self._admitted.pop(worker, ()):
            self.limits.settle(highest, highest)

    def ask(self, worker: str, server: str, highest: float | None) -> str:
        """Return ``GO``, ``WAIT``, ``HALTED``, or one line about the limit that is reached."""
        under_way = sum(other == server for requests in self._admitted.values() for other, _ in requests)
        if self.in_flight is not None and under_way >= self.in_flight and not self.limits.halted.is_set():
            return WAIT
        try:
            if not self.limits.admit_now(highest):
                return WAIT
        except Halted:
            return HALTED
        except LimitReached as error:
            return str(error)
        self._admitted[worker].append((server, highest))
        return GO

    def settle(self, worker: str, server: str, highest: float | None, usd: float | None) -> None:
        """Record the end of a request."""
        self._admitted[worker].remove((server, highest))
        self.limits.settle(highest, usd)

    def halt(self) -> None:
        """Admit no more requests; workers end after the images under way."""
        self.limits.halt()

    def is_halted(self) -> bool:
        """Return whether the run is halted."""
        return self.limits.halted.is_set()

    def spent(self) -> tuple[int, float]:
        """Return the number of requests sent so far, and their cost in USD."""
        return self.limits.own.calls, self.limits.own.usd


class ClusterLimits(RunLimits):
    """The limits in a worker, which asks the ``LimitActor`` of the cluster before each request."""

    def __init__(self, actor: Any) -> None:
        import ray

        super().__init__()
        self._counter, self._get = actor, ray.get
        self._worker = ray.get_runtime_context().get_actor_id() or "driver"
        self._get(actor.began.remote(self._worker))
        Thread(target=self._check_halted, daemon=True).start()

    def beside(self, limits: Limits | None) -> RunLimits:
        """Return these limits: those of a worker's program are those of the run, which the actor counts."""
        return self

    def admit(self, highest_usd: float | None, server: str = "") -> None:
        """Admit a request as ``Limits`` does, for all workers."""
        pause, longest = ASK_AGAIN
        while not self.halted.is_set():
            answer = self._get(self._counter.ask.remote(self._worker, server, highest_usd))
            if answer == GO:
                return
            if answer == HALTED:
                break
            if answer != WAIT:
                raise LimitReached(answer)
            self.halted.wait(pause)
            pause = min(2 * pause, longest)
        raise Halted("interrupted")

    def settle(self, highest_usd: float | None, usd: float | None, server: str = "") -> None:
        """Record the end of a request as ``Limits`` does, for all workers."""
        self._get(self._counter.settle.remote(self._worker, server, highest_usd, usd))

    def _check_halted(self) -> None:
        while not self.halted.is_set():
            try:
                if self._get(self._counter.is_halted.remote()):
                    self.halt()
            except Exception:  # the actor and the driver have stopped
                self.halt()
            time.sleep(CHECK_SECONDS)
