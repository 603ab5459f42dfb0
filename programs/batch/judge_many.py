"""One program over many images, side by side, each result handed over as it comes.

A program that asks a model waits most of the time: threads. One that only computes is kept to one core by Python's
lock, so it is copied into processes, once there is enough to do to be worth their start. The figures are the same to
the last bit either way.
"""

import contextvars
import logging
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import LifoQueue, SimpleQueue
from typing import Any, TypeAlias, TypeVar

import dspy

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import Halted, LimitReached, current, set_current
from agenticiqa.programs.batch.worker import Died, NotStarted, Worker
from agenticiqa.programs.errors import AgenticIQAError, ImageError, UserError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Failure: TypeAlias = AgenticIQAError | dspy.LMError

IMAGES_PER_PROCESS = 8  # about as many photos of half a megapixel are judged while a process starts
LONG_SECONDS = 5.0  # of processor time: when fewer images have taken as long, they are large ones

SMALLER = "judge it again with fewer workers, or a smaller copy of it"


@dataclass(frozen=True)
class Job:
    """One image to judge, with its question and, if there is one, its reference."""

    image: Path
    query: str
    reference: Path | None = None
    resize_reference: bool = False


def itself(result: dspy.Prediction) -> dspy.Prediction:
    """The result as it is."""
    return result


def never(outcome: object) -> bool:
    """Judge them all."""
    return False


def judge_many(
    program: AgenticIQA,
    jobs: Iterable[Job],
    workers: int,
    then: Callable[[dspy.Prediction], T] = itself,
    enough: Callable[[T | Failure], bool] = never,
) -> Generator[tuple[Job, T | Failure], None, None]:
    """Judge every job, ``workers`` at a time; yields each with its result, or with the error that it ended in.

    ``then`` is applied to each result where the image was judged, so that no more has to be kept, or sent over from
    another process, than what it returns: ``result.to_json``, say. An error of ours that it raises is that job's.

    A program of which every stage computes is run in processes, at most one for every 8 images, or right here when
    that makes one. (Images so large that fewer have taken 5 s of processor time get processes, too.) ``then`` and its
    result must be picklable for that, and not be defined in the running script. Otherwise there are threads.

    An outcome for which ``enough`` is true ends the run: no more is begun, nothing more is sent to a model, what comes
    to its end without is yielded. Outcomes that only tell of the end itself (Halted, a second LimitReached) are not.

    Begun or waiting are at most two jobs for each worker, so memory does not grow with their number. At Ctrl-C nothing
    more is sent to a model; jobs that have not begun, or would have to ask again, are dropped, those that come to their
    end without are waited for and yielded, and then KeyboardInterrupt is raised.
    """
    judge = partial(_judge, program, then)
    upcoming = iter(jobs)
    if not _only_computes(program):
        yield from _side_by_side(judge, upcoming, workers, enough)
        return
    ahead, spent = deque(islice(upcoming, IMAGES_PER_PROCESS * workers)), 0.0
    while ahead and (processes := _worthwhile(workers, len(ahead), spent)) < 2:
        begun = time.process_time()
        outcome = judge(ahead[0])
        spent += time.process_time() - begun
        yield ahead.popleft(), outcome
        if enough(outcome):
            return
        ahead.extend(islice(upcoming, 1))
    if not ahead:
        return
    upcoming = chain(ahead, upcoming)
    if function := _movable(judge):
        with _processes(function, processes) as judge_apart:
            yield from _side_by_side(judge_apart, upcoming, processes, enough)
    else:
        yield from _side_by_side(judge, upcoming, workers, enough)


def _worthwhile(workers: int, images: int, spent: float) -> int:
    """How many processes are worth their start for the images ahead, after so many seconds without."""
    return min(workers, images if spent >= LONG_SECONDS else images // IMAGES_PER_PROCESS)


def _side_by_side(
    judge: Callable[[Job], T | Failure], upcoming: Iterator[Job], workers: int, enough: Callable[[T | Failure], bool]
) -> Generator[tuple[Job, T | Failure], None, None]:
    waiting: dict[Future[T | Failure], Job] = {}
    finished: SimpleQueue[Future[T | Failure]] = SimpleQueue()  # concurrent.futures.wait would look at each every time
    pool = ThreadPoolExecutor(workers)
    limits, context = current(), contextvars.copy_context()
    context.run(set_current, limits)

    def the_rest() -> Iterator[tuple[Job, T | Failure]]:
        """What is under way, sending nothing more."""
        limits.halt()
        pool.shutdown(wait=True, cancel_futures=True)
        ended = ((job, future.result()) for future, job in waiting.items() if not future.cancelled())
        return ((job, outcome) for job, outcome in ended if not isinstance(outcome, Halted | LimitReached))

    try:
        while True:
            while len(waiting) < 2 * workers and (job := next(upcoming, None)) is not None:
                future = pool.submit(context.copy().run, judge, job)
                waiting[future] = job
                future.add_done_callback(finished.put)
            if not waiting:
                return
            future = finished.get()
            outcome = future.result()
            yield waiting.pop(future), outcome
            if enough(outcome):
                yield from the_rest()
                return
    except KeyboardInterrupt:
        if under_way := sum(future.running() for future in waiting):
            logger.warning(
                "interrupted: waiting for what was already sent about %d images; Ctrl-C again leaves at once", under_way
            )
        yield from the_rest()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _judge(program: AgenticIQA, then: Callable[[dspy.Prediction], T], job: Job) -> T | Failure:
    try:
        # DSPy would otherwise keep every image of the run in its history and trace.
        with dspy.context(disable_history=True, trace=None):
            result = program(
                image=job.image, query=job.query, reference=job.reference, resize_reference=job.resize_reference
            )
            return then(result)
    except (AgenticIQAError, dspy.LMError) as error:
        return error
    except MemoryError:
        return ImageError(f"{job.image}: memory ran out; {SMALLER}")


@contextmanager
def _processes(function: bytes, count: int) -> Iterator[Callable[[Job], Any]]:
    """A ``_judge`` of one argument, pickled, as one that hands each job to a process that is free."""
    processes = [Worker(function) for _ in range(count)]
    free: LifoQueue[Worker] = LifoQueue()  # the last one used is surely running
    for process in processes:
        free.put(process)

    def judge(job: Job) -> Any:
        process = free.get()
        try:
            return process(job)
        except Died as end:
            return ImageError(f"{job.image}: the process that judged it {end}; {SMALLER}")
        except NotStarted as reason:
            return UserError(f"no process could be started to judge in ({reason}); judge with one worker")
        finally:
            free.put(process)

    try:
        yield judge
    finally:
        for process in processes:
            process.close()


def _only_computes(program: AgenticIQA) -> bool:
    """Whether every part is one of ours that asks no model (one that does holds a ``dspy.Predict``)."""
    return all(type(part).__module__.startswith("agenticiqa.") for _, part in program.named_sub_modules())


def _movable(judge: Callable[[Job], Any]) -> bytes | None:
    """The function pickled, or ``None`` if it can only be called here; the reason is logged."""
    reason = ""
    if getattr(sys, "frozen", False) or not sys.executable:
        reason = "this Python cannot start another"
    elif dspy.settings.callbacks:
        reason = "DSPy's callbacks would not hear of what is judged elsewhere"
    else:
        try:
            function = pickle.dumps(judge)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            reason = str(error)
        else:
            if b"__main__" not in function:
                return function
            reason = "what the running script defines cannot be imported elsewhere"
    logger.info("judging in threads, not processes: %s", reason)
    return None
