"""The limits of a run on a cluster: one keeper counts the requests of all workers, which ask it before each."""

import time
from collections import defaultdict
from threading import Thread
from typing import Any

from agenticiqa.programs.backends.ledger import Halted, LimitReached, Limits

GO, WAIT, HALTED = "go", "wait", "halted"
ASK_AGAIN = (0.02, 1.0)  # seconds between two questions to the keeper, at first and at most
LOOK = 1.0  # seconds after which a worker that asks no model looks whether the run was ended


class LimitKeeper:
    """Counts for all workers; the cluster has one, as an actor, whose methods run one after the other.

    ``in_flight`` bounds the requests under way to each server. What a worker was admitted to and never settled, as it
    died, counts with the most that it may have cost once another takes its place.
    """

    def __init__(
        self, max_calls: int | None = None, max_usd: float | None = None, in_flight: int | None = None
    ) -> None:
        self.limits, self.in_flight = Limits(max_calls, max_usd), in_flight
        self._held: dict[str, list[tuple[str, float | None]]] = defaultdict(list)

    def began(self, worker: str) -> None:
        """A worker begins, perhaps in the place of one that died."""
        for _, highest in self._held.pop(worker, ()):
            self.limits.settle(highest, highest)

    def ask(self, worker: str, server: str, highest: float | None) -> str:
        """``GO``, ``WAIT``, ``HALTED``, or the limit that is reached, in one line."""
        under_way = sum(other == server for each in self._held.values() for other, _ in each)
        if self.in_flight is not None and under_way >= self.in_flight and not self.limits.halted.is_set():
            return WAIT
        try:
            if not self.limits.admit_now(highest):
                if any(self._held.values()):
                    return WAIT
                self.limits.admit(highest)  # which raises, as nothing under way may turn out cheaper
        except Halted:
            return HALTED
        except LimitReached as error:
            return str(error)
        self._held[worker].append((server, highest))
        return GO

    def settle(self, worker: str, server: str, highest: float | None, usd: float | None) -> None:
        """A request has ended."""
        self._held[worker].remove((server, highest))
        self.limits.settle(highest, usd)

    def halt(self) -> None:
        """Admit nothing more; workers end with the images under way."""
        self.limits.halt()

    def is_halted(self) -> bool:
        """Whether the run was ended."""
        return self.limits.halted.is_set()

    def spent(self) -> tuple[int, float]:
        """The requests sent so far, and what they cost in USD."""
        return self.limits.calls, self.limits.usd


class ClusterLimits(Limits):
    """The limits as a worker meets them: it asks the keeper, an actor of Ray, before each request."""

    def __init__(self, keeper: Any) -> None:
        import ray

        super().__init__()
        self._keeper, self._get = keeper, ray.get
        self._worker = ray.get_runtime_context().get_actor_id() or "driver"
        self._get(keeper.began.remote(self._worker))
        Thread(target=self._look, daemon=True).start()

    def admit(self, highest_usd: float | None, server: str = "") -> None:
        """As that of ``Limits``, for all workers."""
        pause, longest = ASK_AGAIN
        while not self.halted.is_set():
            answer = self._get(self._keeper.ask.remote(self._worker, server, highest_usd))
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
        """As that of ``Limits``, for all workers."""
        self._get(self._keeper.settle.remote(self._worker, server, highest_usd, usd))

    def _look(self) -> None:
        while not self.halted.is_set():
            try:
                if self._get(self._keeper.is_halted.remote()):
                    self.halt()
            except Exception:  # the keeper is gone, and with it the driver
                self.halt()
            time.sleep(LOOK)
