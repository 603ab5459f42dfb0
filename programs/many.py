"""One program over many images, side by side, each result handed over as it comes."""

import contextvars
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import dspy

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import AgenticIQAError

Failure: TypeAlias = AgenticIQAError | dspy.LMError


@dataclass(frozen=True)
class Job:
    """One image to judge, with its question and, if there is one, its reference."""

    image: Path
    query: str
    reference: Path | None = None
    resize_reference: bool = False


def judge_many(
    program: AgenticIQA, jobs: Iterable[Job], workers: int
) -> Generator[tuple[Job, dspy.Prediction | Failure], None, None]:
    """Judge every job with ``workers`` threads; yields each with its result, or with the error that it ended in.

    At most twice as many jobs as workers are taken ahead, so memory does not grow with their number. At Ctrl-C, jobs
    that have not begun are dropped, those under way are waited for and yielded, and then KeyboardInterrupt is raised.
    """
    waiting: dict[Future[dspy.Prediction | Failure], Job] = {}
    upcoming = iter(jobs)
    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            while len(waiting) < 2 * workers and (job := next(upcoming, None)) is not None:
                waiting[pool.submit(contextvars.copy_context().run, _judge, program, job)] = job
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    except KeyboardInterrupt:
        pool.shutdown(wait=True, cancel_futures=True)
        yield from ((job, future.result()) for future, job in waiting.items() if not future.cancelled())
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _judge(program: AgenticIQA, job: Job) -> dspy.Prediction | Failure:
    try:
        # DSPy would otherwise keep every image of the run in its history and trace.
        with dspy.context(disable_history=True, trace=None):
            return program(
                image=job.image, query=job.query, reference=job.reference, resize_reference=job.resize_reference
            )
    except (AgenticIQAError, dspy.LMError) as error:
        return error
