"""Call a function on many items in threads, and yield each outcome as it is finished."""

import contextvars
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock
from typing import TypeAlias, TypeVar

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
    upcoming = iter(items)
    waiting: dict[Future[T | Failure], J] = {}
    finished: SimpleQueue[Future[T | Failure]] = SimpleQueue()  # concurrent.futures.wait would check all each time
    pool = ThreadPoolExecutor(workers)
    limits, context = current().limits, contextvars.copy_context()

    lock = Lock()
    stopped_by: list[T | Failure] = []  # empty, or the outcome that ended the run

    def assess_unless_stopped(job: J) -> T | Failure:
        if stopped_by:
            return Halted("the run was stopped")
        with within(limits):
            outcome = assess(job)
        with lock:
            if not stopped_by and stop_when(outcome):
                stopped_by.append(outcome)
                limits.halt()
        return outcome

    def remaining() -> Iterator[tuple[J, T | Failure]]:
        """Yield the outcomes of the jobs under way, which send no further requests."""
        limits.halt()
        pool.shutdown(wait=True, cancel_futures=True)
        ended = ((job, future.result()) for future, job in waiting.items() if not future.cancelled())
        return (
            (job, outcome)
            for job, outcome in ended
            if not isinstance(outcome, Halted)
            and (any(outcome is end for end in stopped_by) or not isinstance(outcome, LimitReached))
        )

    try:
        while True:
            while len(waiting) < 2 * workers and (job := next(upcoming, None)) is not None:
                future = pool.submit(context.copy().run, assess_unless_stopped, job)
                waiting[future] = job
                future.add_done_callback(finished.put)
            if not waiting:
                return
            future = finished.get()
            outcome = future.result()
            yield waiting.pop(future), outcome
            if stopped_by:
                yield from remaining()
                return
    except KeyboardInterrupt:
        if under_way := sum(future.running() for future in waiting):
            logger.warning(WAITING if computes else GIVEN_UP, under_way)
        limits.abort()
        yield from remaining()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
