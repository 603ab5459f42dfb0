"""Judge images whose requests go as batches: each image again and again, from its file, until its answers are there."""

import hashlib
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from agenticiqa.programs.backends.batches.run import BatchRun, ImageRequests, one_image, stages_given
from agenticiqa.programs.backends.deferred import Pending
from agenticiqa.programs.backends.ledger import LimitReached
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.tools.tool import kept_calls

T = TypeVar("T")

Judge = Callable[[Job], T]
Several = Callable[[Judge[T], Iterable[Job], Callable[[T], bool]], Iterable[tuple[Job, T]]]


def judge_in_rounds(
    run: BatchRun, judge: Judge[T], jobs: Iterable[Job], several: Several[T], stop_when: Callable[[T], bool]
) -> Generator[tuple[Job, T], None, None]:
    """Yield each job with its outcome, as ``judge_many`` does. ``several`` judges jobs side by side, in one pass.

    A pass judges every image whose answers have come; each ends with a result, or with further requests that wait.
    What tools measured is kept in the manifest, so that a pass costs little more than decoding.
    """
    asked_by: dict[int, ImageRequests] = {}  # of images that were judged, until they are taken from this pass
    stopped = False

    def judge_once(job: Job) -> T:
        with one_image() as asked, kept_calls(_Measured(run)):
            outcome = judge(job)
        if isinstance(outcome, Pending):
            asked_by[id(job)] = asked
        elif (forgotten := _unusable(asked, outcome)) is not None:
            run.manifest.forget(forgotten)
        return outcome

    def should_stop(outcome: T) -> bool:
        nonlocal stopped
        stopped = stopped or (not isinstance(outcome, Pending) and stop_when(outcome))
        return stopped

    waiting: list[tuple[Job, ImageRequests]] = []
    ready: Iterable[Job] = jobs
    while True:
        for job, outcome in several(judge_once, ready, should_stop):
            if isinstance(outcome, Pending):
                waiting.append((job, asked_by.pop(id(job))))
            else:
                yield job, outcome
        run.flush()
        if not (stopped or waiting):
            run.finish()
        if stopped or not waiting:
            return
        chosen = set[int]()
        while not chosen:
            if run.under_way:
                run.wait()
            elif all(asked.lacks_room for _, asked in waiting):
                yield from _without_room(run, waiting[0][0], stop_when)
                return
            chosen = {id(job) for job, asked in waiting if not asked.pending & run.under_way}
        ready = [job for job, _ in waiting if id(job) in chosen]
        waiting = [each for each in waiting if id(each[0]) not in chosen]


def _without_room(run: BatchRun, job: Job, stop_when: Callable[[T], bool]) -> Iterable[tuple[Job, T]]:
    limits = run.limits
    most = f"{limits.max_usd:g} USD" if limits.max_usd is not None else f"{limits.max_calls} calls"
    error = LimitReached(f"the next requests would exceed the limit of {most} ({limits.calls} requests were sent)")
    outcome: T = error
    stop_when(outcome)
    yield job, outcome


def _unusable(asked: ImageRequests, outcome: object) -> list[str] | None:
    """The answers that a later run must not be given again, as they came to nothing; ``None`` if there are none."""
    if isinstance(outcome, Unanswered):
        return stages_given(asked, [outcome.stage])
    if isinstance(outcome, dict) and outcome.get("rejected_answers") and _is_unscored(outcome):
        return stages_given(asked, [*outcome["rejected_answers"]])
    return None


def _is_unscored(row: dict[str, object]) -> bool:
    from agenticiqa.programs.result import is_unscored

    return bool(is_unscored(row))


class _Measured:
    """What tools measured, by a digest of tool and pixels, in the manifest of a run."""

    def __init__(self, run: BatchRun) -> None:
        self.manifest = run.manifest

    def get(self, key: str) -> str | None:
        """As it was kept."""
        return self.manifest.measured(hashlib.sha256(key.encode()).hexdigest())

    def keep(self, key: str, value: str) -> None:
        """Keep it."""
        self.manifest.keep_measured(hashlib.sha256(key.encode()).hexdigest(), value)
