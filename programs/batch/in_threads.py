"""Call a function on many items in threads, and yield each outcome as it is finished."""

import contextvars
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Lock
from typing import Generic, TypeAlias, TypeVar

import dspy

from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.backends.run_context import current, within
from agenticiqa.programs.errors import AgenticIQAError

logger = logging.getLogger(__name__)

T = TypeVar("T")
J = TypeVar("J")  # the item: usually a job
Failure: TypeAlias = AgenticIQAError | dspy.LMError

WAITING = "interrupted: waiting for the %d images under way; press Ctrl-C again to abort"
GIVEN_UP = "interrupted: %d images under way are given up, and the answers about them are not waited for"


@dataclass(frozen=True)
class Ended(Generic[T]):
    """The outcome of an item, and whether it stops the run."""

    outcome: T | Failure
    stops: bool = False


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

    def assessed(item: J) -> Ended[T]:
        if stopped.is_set():
            return Ended(Halted("the run was stopped"))
        with within(limits):
            outcome = assess(item)
        with lock:
            if stopped.is_set() or not stop_when(outcome):
                return Ended(outcome)
            stopped.set()
            limits.halt()
        return Ended(outcome, stops=True)

    pool = ThreadPoolExecutor(workers)
    under_way: dict[Future[Ended[T]], J] = {}
    finished: SimpleQueue[Future[Ended[T]]] = SimpleQueue()  # concurrent.futures.wait would check all each time
    try:
        while not stopped.is_set():
            while len(under_way) < 2 * workers and (item := next(upcoming, None)) is not None:
                future = pool.submit(context.copy().run, assessed, item)
                under_way[future] = item
                future.add_done_callback(finished.put)
            if not under_way:
                return
            future = finished.get()
            ended = future.result()
            yield under_way.pop(future), ended.outcome
        yield from last_outcomes(pool, under_way)
    except KeyboardInterrupt:
        if running := sum(future.running() for future in under_way):
            logger.warning(WAITING if computes else GIVEN_UP, running)
        limits.abort()
        yield from last_outcomes(pool, under_way)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def last_outcomes(pool: ThreadPoolExecutor, under_way: dict[Future[Ended[T]], J]) -> Iterator[tuple[J, T | Failure]]:
    """Wait for the items under way of a run that sends no further requests, and yield the outcomes that they have."""
    pool.shutdown(wait=True, cancel_futures=True)
    for future, item in under_way.items():
        if future.cancelled():
            continue
        ended = future.result()
        only_stopped = isinstance(ended.outcome, LimitReached) and not ended.stops
        if not only_stopped and not isinstance(ended.outcome, Halted):
            yield item, ended.outcome
