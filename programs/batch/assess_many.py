"""Assess many images with one program, several at a time, and yield each result as it is finished.

A program that asks a model spends its time waiting, so its images are assessed in threads. Python's global lock limits
a program that only computes to one core, so it is copied into processes if there are enough images. The results are
bit-identical for any number of workers and any order of the images.
"""

import logging
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from queue import LifoQueue
from typing import TYPE_CHECKING, Any, TypeVar

import dspy

from agenticiqa.programs.assess import AgenticIQA, refuse_unpriced
from agenticiqa.programs.backends.connect import workers_for
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.limits import LimitReached, Limits
from agenticiqa.programs.backends.run_context import OtherModels, current, within
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.in_threads import Failure, in_threads, never
from agenticiqa.programs.batch.job import Job, failed_row
from agenticiqa.programs.batch.results_file import Row, lacking
from agenticiqa.programs.batch.worker import NotStarted, Worker, WorkerStopped
from agenticiqa.programs.data_sets.kinds import is_data_set
from agenticiqa.programs.errors import AgenticIQAError, ImageError, Unanswered, Unforeseen, UserError
from agenticiqa.programs.images import ImageSource, UndecodedImage, name_of
from agenticiqa.programs.images.finding import images_given
from agenticiqa.programs.images.tables import BESIDE_IMAGE, NoImage
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.inputs import row_arguments
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

if TYPE_CHECKING:
    from pandas import DataFrame

logger = logging.getLogger(__name__)

T = TypeVar("T")

IMAGES_PER_PROCESS = 8  # photos of half a megapixel that are assessed while a process starts
CALLS_PER_IMAGE = 5  # calls that a question about a photo needs at most, unless an answer is rejected
LONG_SECONDS = 5.0  # seconds of processor time; if fewer images take longer, the images are large

ADVICE = "assess it again with fewer workers, or assess a smaller copy of it"


def unchanged(result: Assessment) -> Assessment:
    """Return the result itself: the default of ``postprocess``."""
    return result


class Results(Iterator[tuple[Job, T | Failure]]):
    """The outcomes of a run: an iterator that yields each job with its outcome as soon as it is finished."""

    def __init__(self, outcomes: Generator[tuple[int, Job, T | Failure], None, None], index: Any = None) -> None:
        """Take the outcomes, each with the place of its job among the given ones, and the index of a DataFrame."""
        self._outcomes, self._index = outcomes, index
        self._rows: dict[int, Row] = {}  # kept if an error ends the run

    def __next__(self) -> tuple[Job, T | Failure]:
        return next(self._outcomes)[1:]

    def close(self) -> None:
        """End the run: no further job begins."""
        self._outcomes.close()

    def to_frame(self) -> "DataFrame":
        """Assess what remains, and return all of it as a DataFrame of pandas, in the order of the jobs.

        Returns:
            A row for each job with the columns of ``assess --parquet``; that of a failed one has an ``error``. The
            index is that of the given DataFrame of pandas, if any.

        Raises:
            UserError: ``postprocess`` returns something else than results or their ``to_dict``.
            LimitReached: A limit is reached; ``results`` is the DataFrame so far.
            Exception: Another error that ended the run. Another call returns the results so far.
        """
        from pandas import Index  # imports that one photo does not need

        from agenticiqa.programs.batch import columns

        try:
            for place, job, outcome in self._outcomes:
                self._rows[place] = columns.columns_of(_row(job, outcome))
        except LimitReached as limit:
            limit.results = self.to_frame()  # the outcomes are exhausted
            raise
        places = sorted(self._rows)
        frame = columns.frame_of([self._rows[place] for place in places])
        return frame.set_index(Index(places) if self._index is None else self._index.take(places))


def _row(job: Job, outcome: object) -> Mapping[str, Any]:
    if isinstance(outcome, Exception):
        return failed_row(outcome, job)
    row = outcome.to_dict() if isinstance(outcome, Assessment) else outcome
    if not isinstance(row, Mapping):
        raise UserError(f"to_frame needs results, but postprocess returned {type(row).__name__}; leave postprocess out")
    return row


def assess_many(
    program: AgenticIQA,
    jobs: Iterable[Job | ImageSource | Mapping[str, Any]] | Job | ImageSource | Mapping[str, Any],
    workers: int | None = None,
    postprocess: Callable[[Assessment], T] = unchanged,
    stop_when: Callable[[T | Failure], bool] = never,
    *,
    limits: Limits | None = None,
) -> Results[T]:
    """Assess every job, several at a time, and yield each when it is finished.

    A program with only computing stages runs in processes, at most one per 8 images, or in this thread if that is one.
    (After 5 s of processor time, it may use more processes.) For processes, ``postprocess`` and its return value must
    be picklable and not be defined in the running script; otherwise threads are used.

    At most two jobs per worker are begun or waiting, so memory does not grow with their number. At Ctrl-C, jobs that
    have not begun, or need an answer of a model, are dropped at once. The others are finished and yielded, and then
    KeyboardInterrupt is raised.

    Args:
        program: The program.
        jobs: Jobs, or images in any form that ``images.sources`` lists, which are rated, or rows: dicts with an image,
            and optionally its query, options, reference and resize_reference. Or one of them, a table of such rows (a
            DataFrame of pandas or Polars, an Arrow table, a data set of ``datasets``), or one name: a folder, a pattern
            such as ``album/*.jpg``, a file, or a data set such as ``train.tar`` (see ``data_sets.kinds``).
        workers: How many images are assessed at a time; by default the number of cores for a program that only
            computes, and 4 for one that asks a model, or 1 if its server answers one request at a time.
        postprocess: Applied to each result in its thread or process; only the return value (such as that of
            ``Assessment.to_dict``) is kept. An error of this package that it raises is the job's outcome.
        stop_when: Called with each outcome, in one thread at a time. Once it returns true, no further job begins and
            nothing more is sent to a model. Jobs under way that can finish without a model are still yielded; outcomes
            that only report the stop itself (Halted) are not.
        limits: The limits of this call, which apply beside those of the program.

    Returns:
        An iterator of pairs: the job (for an image, the job that rates it) with its result, or with the exception that
        ended it. An unexpected exception is given as ``errors.Unforeseen``. A row that cannot be read is a failed job.
        ``to_frame()`` returns all of them as one table.

    Raises:
        ImageError: While it is read: the name is of no image, or the table has no column of images.
        WrongArgument: There is a limit in USD, but the price of a model is not known.
        LimitReached: A limit is reached. It ends the run as ``stop_when`` does, so the results so far are yielded
            before.
    """
    index = getattr(jobs, "index", None) if hasattr(jobs, "itertuples") else None
    return Results(_numbered(program, jobs, workers, postprocess, stop_when, limits), index)


def _numbered(
    program: AgenticIQA,
    jobs: Any,
    workers: int | None,
    postprocess: Callable[[Assessment], T],
    stop_when: Callable[[T | Failure], bool],
    limits: Limits | None,
) -> Generator[tuple[int, Job, T | Failure], None, None]:
    """Yield each outcome with the place of its job among the given ones, from 0."""
    places: dict[int, deque[int]] = {}  # the places of each job that has begun, by identity

    def begun() -> Iterator[Job]:
        for place, given in enumerate(_given(jobs)):
            job = as_job(given, place)
            places.setdefault(id(job), deque()).append(place)
            yield job

    for job, outcome in _outcomes(program, begun(), workers, postprocess, stop_when, limits):
        place = places[id(job)].popleft()
        if not places[id(job)]:
            del places[id(job)]
        yield place, job, outcome


def _given(jobs: Any) -> Iterable[Any]:
    """Return what is to be assessed, one by one: jobs, images or rows; also the images of a data set that is named."""
    if isinstance(jobs, Job):
        return [jobs]
    if isinstance(jobs, str | os.PathLike) and is_data_set(os.fspath(jobs)):
        found = find_jobs([os.fspath(jobs)], DEFAULT_QUERY)
        return [*found.jobs, *(Job(NoImage(error.image, error.problem)) for error in found.problems)]
    return images_given(jobs)


def _outcomes(
    program: AgenticIQA,
    todo: Iterator[Job],
    workers: int | None,
    postprocess: Callable[[Assessment], T],
    stop_when: Callable[[T | Failure], bool],
    limits: Limits | None,
) -> Generator[tuple[Job, T | Failure], None, None]:
    assess = partial(_assess, program, postprocess)
    computes = _only_computes(program)
    if workers is None:
        workers = available_cores() if computes else _model_workers(program)
    if computes:
        yield from run_many(assess, todo, workers, stop_when, computes=True)
        return
    refuse_unpriced(program, limits)
    programs = [part.limits for _, part in program.named_sub_modules(type_=AgenticIQA)]  # also inside a wrapper
    workers = _fewer_at_a_limit(workers, [*current().limits.all, *programs, *([limits] if limits else [])])
    reached: LimitReached | None = None

    def assess_one(job: Job) -> T | Failure:
        with within(current().limits.beside(limits)):
            return assess(job)

    def should_stop(outcome: T | Failure) -> bool:
        return isinstance(outcome, LimitReached) or stop_when(outcome)

    several = partial(in_threads, workers=workers, computes=False)
    if (assess_otherwise := current().assess) is not None:
        outcomes = assess_otherwise(assess_one, todo, several, should_stop, stages_to_forget)
    else:
        outcomes = several(assess_one, todo, should_stop)
    for job, outcome in outcomes:
        if isinstance(outcome, LimitReached):
            reached = reached or outcome
        else:
            yield job, outcome
    if reached is not None:
        raise reached


def run_many(
    assess: Callable[[Job], T | Failure],
    jobs: Iterable[Job],
    workers: int,
    stop_when: Callable[[T | Failure], bool] = never,
    *,
    computes: bool,
) -> Generator[tuple[Job, T | Failure], None, None]:
    """Do what ``assess_many`` does, with a function that assesses one job and raises nothing.

    A function that only ``computes`` runs in processes where that is faster and the function is picklable.
    """
    upcoming = iter(jobs)
    if not computes:
        yield from in_threads(assess, upcoming, stop_when, workers=workers)
        return
    ahead, spent = deque(islice(upcoming, IMAGES_PER_PROCESS * workers)), 0.0
    while ahead and (processes := _worthwhile(workers, len(ahead), spent)) < 2:
        begun = time.process_time()
        outcome = assess(ahead[0])
        spent += time.process_time() - begun
        yield ahead.popleft(), outcome
        if stop_when(outcome):
            return
        ahead.extend(islice(upcoming, 1))
    if not ahead:
        return
    upcoming = chain(ahead, upcoming)
    if function := _pickled(assess):
        with _processes(function, processes) as assess_elsewhere:
            yield from in_threads(assess_elsewhere, upcoming, stop_when, workers=processes)
    else:
        yield from in_threads(assess, upcoming, stop_when, workers=workers)


def as_job(source: Job | ImageSource | Mapping[str, Any], number: int) -> Job:
    """Return a job unchanged; for an image, return the job that rates it, for the row of this number, its job.

    Bytes are named by their number. The job of an invalid row fails with the reason.
    """
    if isinstance(source, Job):
        return source
    if isinstance(source, bytes):
        return Job(UndecodedImage(f"image {number}", source))
    if not isinstance(source, Mapping):
        return Job(source)
    row = row_arguments(source, number)
    try:
        return Job(**{name: row[name] for name in ("image", *BESIDE_IMAGE) if name in row})
    except UserError as error:
        return Job(NoImage(name_of(row["image"]), str(error)))


def stages_to_forget(outcome: object) -> Collection[str]:
    """Return the stages whose requests a later run must send again, because it assesses the image again."""
    if isinstance(outcome, Unanswered):
        return [outcome.stage]
    if isinstance(outcome, dict) and outcome.get("rejected_answers") and lacking(outcome):
        return [*outcome["rejected_answers"]]
    return []


def _worthwhile(workers: int, images: int, spent: float) -> int:
    """Return how many processes to start for the next images, after ``spent`` seconds without processes."""
    return min(workers, images if spent >= LONG_SECONDS else images // IMAGES_PER_PROCESS)


def _assess(program: AgenticIQA, postprocess: Callable[[Assessment], T], job: Job) -> T | Failure:
    # DSPy would otherwise keep every image of the run in its history and trace.
    with dspy.context(disable_history=True, trace=None):
        try:
            result = program(
                image=job.image,
                query=job.query,
                reference=job.reference,
                resize_reference=job.resize_reference,
                options=job.options,
            )
        except (AgenticIQAError, dspy.LMError) as error:
            return error
        except MemoryError:
            return ImageError(f"out of memory; {ADVICE}", job.name)
        except Exception as error:
            logger.info("%s: unexpected exception", job.name, exc_info=True)
            problem = f"{type(error).__name__}: {error}; run with -v to see where, and please report it"
            return Unforeseen(problem, job.name)
        try:
            return postprocess(result)
        except (AgenticIQAError, dspy.LMError) as error:
            return error


@contextmanager
def _processes(function: bytes, count: int) -> Iterator[Callable[[Job], Any]]:
    """Yield a function that sends each job to a free process; ``function`` is the pickled one to run there."""
    processes = [Worker(function) for _ in range(count)]
    free: LifoQueue[Worker] = LifoQueue()  # the worker used last is already started
    for process in processes:
        free.put(process)

    def assess(job: Job) -> Any:
        process = free.get()
        try:
            return process(job.picklable())
        except AgenticIQAError as error:
            return error
        except WorkerStopped as end:
            return ImageError(f"the worker process {end}; {ADVICE}", job.name)
        except NotStarted as reason:
            return UserError(f"no worker process could be started ({reason}); use one worker")
        finally:
            free.put(process)

    try:
        yield assess
    finally:
        for process in processes:
            process.close()


def _only_computes(program: AgenticIQA) -> bool:
    """Return whether every stage is the package's own and asks no model (holds no ``dspy.Predict``)."""
    return all(type(part).__module__.startswith("agenticiqa.") for _, part in program.named_sub_modules())


def _model_workers(program: AgenticIQA) -> int:
    """Return the default number of images in parallel: the fewest that the server of one of its models takes."""
    engines = (lm.engine for question in program.questions for lm in question.backend.lms[:1])
    return workers_for(engine.stage for engine in engines if isinstance(engine, Model))


def _fewer_at_a_limit(workers: int, limits: Iterable[Limits]) -> int:
    """Return the number of images in parallel with which few calls finish images, and do not only begin them."""
    left = [each.max_calls - each.calls for each in limits if each.max_calls is not None]
    return max(1, min([workers, *(calls // CALLS_PER_IMAGE for calls in left)]))


def _pickled(assess: Callable[[Job], Any]) -> bytes | None:
    """Return the pickled function; if it can only be called in this process, log the reason and return ``None``."""
    reason = ""
    if getattr(sys, "frozen", False) or not sys.executable:
        reason = "this Python cannot start another process"
    elif any(not isinstance(callback, OtherModels) for callback in dspy.settings.callbacks or ()):
        reason = "DSPy's callbacks receive no events from other processes"
    else:
        try:
            function = pickle.dumps(assess)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            reason = str(error)
        else:
            if b"__main__" not in function:
                return function
            reason = "definitions in the running script cannot be imported by another process"
    logger.info("using threads, not processes: %s", reason)
    return None
