"""Call a function on many items in threads, and yield each outcome as it is finished."""

import contextvars
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeAlias, TypeVar

import dspy

from agenticiqa.programs.backends.limits import Halted
from agenticiqa.programs.backends.run_context import current, within
from agenticiqa.programs.errors import AgenticIQAError

logger = logging.getLogger(__name__)

T = TypeVar("T")
J = TypeVar("J")  # the item: usually a job
Failure: TypeAlias = AgenticIQAError | dspy.LMError

WAITING = "interrupted: waiting for the %d images under way; press Ctrl-C again to abort"
GIVEN_UP = "interrupted: %d images under way are given up, and the answers about them are not waited for"


def never(outcome: object) -> bool:
    """Return false: the default of ``stop_when``."""
    return False


def in_threads(
    assess: Callable[[J], T | Failure],
    items: Iterable[J],
    stop_when: Callable[[T | Failure], bool] = never,
    *,
    workers: int,
    computes: bool = True,
) -> Generator[tuple[J, T | Failure], None, None]:
    """Do what ``assess_many`` does, in threads, with a function that takes one item of any kind and raises nothing.

    ``stop_when`` is called when an item ends, so that the same thread does not begin another one. At Ctrl-C the
    function waits for the items under way. If they do not only compute (``computes``), those that need a further answer
    of a model end at once, without an outcome.
    """
    limits, context, upcoming = current().limits, contextvars.copy_context(), iter(items)
    stopped, lock = Event(), Lock()

    def assessed(item: J) -> T | Failure:
        if stopped.is_set():
            return Halted("the run was stopped")
        with within(limits):
            outcome = assess(item)
        with lock:
            if not stopped.is_set() and stop_when(outcome):
                stopped.set()
                limits.halt()
        return outcome

    pool = ThreadPoolExecutor(workers)
    under_way: dict[Future[T | Failure], J] = {}
    finished: SimpleQueue[Future[T | Failure]] = SimpleQueue()  # concurrent.futures.wait would check all each time
    try:
        while not stopped.is_set():
            while len(under_way) < 2 * workers and (item := next(upcoming, None)) is not None:
                future = pool.submit(context.copy().run, assessed, item)
                under_way[future] = item
                future.add_done_callback(finished.put)
            if not under_way:
                return
            future = finished.get()
            outcome = future.result()
            yield under_way.pop(future), outcome
        yield from last_outcomes(pool, under_way)
    except KeyboardInterrupt:
        if running := sum(future.running() for future in under_way):
            logger.warning(WAITING if computes else GIVEN_UP, running)
        limits.abort()
        yield from last_outcomes(pool, under_way)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def last_outcomes(pool: ThreadPoolExecutor, under_way: dict[Future[T | Failure], J]) -> Iterator[tuple[J, T | Failure]]:
    """Wait for the items under way of a run that sends no further requests, and yield the outcomes that they have."""
    pool.shutdown(wait=True, cancel_futures=True)
    for future, item in under_way.items():
        if future.cancelled():
            continue
        outcome = future.result()
        if not isinstance(outcome, Halted):
            yield item, outcome
