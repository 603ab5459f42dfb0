"""Find out what a backend supports: once, at the first question that depends on it, whoever asks it.

The finding is kept in this process and in the user's cache folder. Questions that are asked at the same time wait for
one probe. A probe that fails is not remembered: its error is that of the questions that waited for it, as any outage
is, and the next question probes again.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from agenticiqa.programs.backends.capabilities import (
    DAYS_KEPT,
    Capabilities,
    cache_folder,
    forget_saved,
    save_capabilities,
    saved_capabilities,
)
from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

STAGE = "probe"  # in the ledger and in logs

_found: dict[tuple[Path, str], Capabilities] = {}
_under_way: dict[tuple[Path, str], "Future[Capabilities]"] = {}
_lock = Lock()


@dataclass(frozen=True)
class Discovery:
    """What is known of one backend, and how to find it out.

    ``backend`` is the name by ``capabilities.name_of``. ``probe`` asks the backend, and raises ``dspy.LMError``.
    """

    backend: str
    probe: Callable[[], Capabilities]

    def known(self) -> Capabilities | None:
        """What was found in the last 30 days, here or by an earlier process; ``None`` when it has to be found out."""
        return known_capabilities(self.backend)

    def find(self) -> Capabilities:
        """What is known, found out by a probe where nothing is. Raises as the probe does."""
        while True:
            if (found := self.known()) is not None:
                return found
            with _lock:
                own: Future[Capabilities] = Future()
                probing = _under_way.setdefault(_place(self.backend), own)
            if probing is own:
                return self._probe(own)
            error = probing.exception()
            if error is None:
                return probing.result()
            if isinstance(error, Exception) and not isinstance(error, LimitReached | Halted):
                raise error
            # It was stopped by limits that may not be those of this run, or by Ctrl-C.

    def find_again(self) -> Capabilities:
        """Probe now, whatever is known. Raises as the probe does, and then keeps what was known."""
        found = self.probe()
        self._keep(found)
        return found

    def forget(self, reason: str) -> None:
        """Forget what is known, so that the next question probes again; the log says why."""
        logger.warning("%s: %s: what it supports is found out again", self.backend, reason)
        with _lock:
            _found.pop(_place(self.backend), None)
        forget_saved(self.backend)

    def _probe(self, under_way: "Future[Capabilities]") -> Capabilities:
        try:
            if (found := self.known()) is not None:  # another thread finished between the look and the entry
                under_way.set_result(found)
                return found
            if (expired := saved_capabilities(self.backend)) is not None:
                logger.info(
                    "%s: what it supports was found on %s, over %d days ago: it is found out again",
                    *(self.backend, expired.when, DAYS_KEPT),
                    extra=event("findings_expired", stage=STAGE, backend=self.backend, found=expired.when),
                )
            found = self.find_again()
        except BaseException as error:
            under_way.set_exception(error)
            raise
        else:
            under_way.set_result(found)
            return found
        finally:
            with _lock:
                _under_way.pop(_place(self.backend), None)

    def _keep(self, found: Capabilities) -> None:
        logger.info(
            "%s: %s", self.backend, found, extra=event("probed", stage=STAGE, backend=self.backend, supports=str(found))
        )
        with _lock:
            _found[_place(self.backend)] = found
        if found.images:
            save_capabilities(self.backend, found)
        else:
            logger.warning("%s refuses every image; this is not saved, and the next run asks again", self.backend)


def known_capabilities(backend: str) -> Capabilities | None:
    """What is known of a backend, by its ``name_of``; ``None`` where nothing is, or it was found over 30 days ago."""
    found = _found.get(_place(backend)) or saved_capabilities(backend)
    return found if found and found.is_current else None


def _place(backend: str) -> tuple[Path, str]:
    return cache_folder(), backend
