"""Assess shards with one program; this machine and every worker of a cluster use the same class."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import dspy
import orjson

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.limits import LimitReached, RunLimits
from agenticiqa.programs.backends.run_context import current, within
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.columns import row_of
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job, SharedQuestion, failed_row, failure_text
from agenticiqa.programs.batch.plan_run import fingerprint_of, hash_of
from agenticiqa.programs.batch.results_file import UNSCORED, lacking
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.batch.summary import counts_of
from agenticiqa.programs.data_sets.kinds import BrokenDataSet
from agenticiqa.programs.data_sets.places import AddressedImage, Unreachable
from agenticiqa.programs.errors import Unforeseen
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.result_row import Row
from agenticiqa.programs.scale.names import PLAN
from agenticiqa.programs.scale.open_shard import jobs_of
from agenticiqa.programs.scale.plan_shards import Shard
from agenticiqa.programs.scale.table import SCHEMA, ShardFolder, ShardStamp

logger = logging.getLogger(__name__)

TEMPORARY = (dspy.LMError, Unreachable, Unforeseen)  # temporary failures
MOST_FAILURES = 10  # failed images that the outcome of a shard names


@dataclass(frozen=True)
class ShardRun:
    """Settings shared by all workers of a run (picklable).

    ``output`` is the folder of the shards, ``workers`` the number of images that one worker assesses at a time.
    ``make`` returns the program of the configuration. With ``retry``, images that failed or have no score are assessed
    again, also in finished shards. ``keep_going`` and ``accepted`` are those of the ``StopRule``. Relative paths are
    relative to ``folder`` (default: the current folder). ``names`` and ``image_column`` are the user's arguments.
    """

    config: Config
    settings: Mapping[str, Any]
    question: SharedQuestion
    output: str
    workers: int
    names: tuple[str, ...] = ()
    image_column: str | None = None
    folder: str = ""
    retry: bool = False
    keep_going: bool = False
    accepted: bool = False
    make: Callable[[Config], AgenticIQA] = AgenticIQA.from_config


@dataclass(frozen=True)
class ShardOutcome:
    """The outcome of a shard: its file is written, or ``broken`` has the reason in one line; or that ``is_part`` of it.

    ``stopped_by`` is the error that ends the run; ``number`` is then -1. ``images`` of the shard were assessed, in this
    run or before, since its last outcome, and ``failures`` has a line for each of the first that failed.
    """

    number: int
    broken: str = ""
    stopped_by: str = ""
    failures: list[str] = field(default_factory=list)
    images: int = 0
    is_part: bool = False


@dataclass(frozen=True)
class PlannedShard:
    """A line of the plan: the number of a shard, its digest, its bytes in ``plan.jsonl``, its file, and its limit.

    ``images`` is the number of images that this run requests of it; ``None`` for a tar file, which no one has counted.
    """

    number: int
    digest: str
    start: int
    end: int
    file: str = ""
    limit: int | None = None
    images: int | None = None


Engine = Callable[[ShardRun, Sequence[PlannedShard]], Iterator[ShardOutcome]]


@dataclass
class _OpenShard:
    """A shard with missing rows; ``jobs`` is the number of jobs under way, ``read`` is True when all were started."""

    shard: Shard
    rows: dict[int, Row] = field(default_factory=dict)
    jobs: int = 0
    reported: int = 0  # images whose outcomes were reported
    read: bool = False
    broken: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    has_temporary_error: bool = False  # True if one of its rows has a temporary error


@dataclass(frozen=True)
class _PlacedJob(Job):
    """A job with its shard, its place in the shard, and whether an earlier run gave it no score."""

    shard: int = 0
    place: int = 0
    is_retry: bool = False


class ShardAssessor:
    """A callable that loads the program once and writes the file of each given shard.

    ``limits`` makes the limits of requests to models; by default those of the context apply.
    """

    def __init__(self, run: ShardRun, limits: Callable[[], RunLimits] | None = None) -> None:
        if run.folder:
            os.chdir(run.folder)
        self.run, self.limits = run, limits() if limits else current().limits
        self.folder = ShardFolder(run.output)
        self.stop_rule = StopRule(run.workers, accepted=run.accepted, keep_going=run.keep_going)
        self._program: AgenticIQA | None = None

    @property
    def program(self) -> AgenticIQA:
        """The program, loaded at its first use."""
        if self._program is None:
            install(self.run.config)
            self._program = self.run.make(self.run.config)
        return self._program

    def __call__(self, batch: Mapping[str, Iterable[Any]]) -> dict[str, list[str]]:
        """Assess the shard in the plan at the bytes ``start`` to ``end``; return its whole outcome as a JSON text."""
        lines = zip(batch["start"], batch["end"], strict=True)
        with within(self.limits):
            if self.limits.halted.is_set():
                return {"outcome": []}
            shards = (Shard(**orjson.loads(self.folder.read(PLAN, int(start), int(end)))) for start, end in lines)
            return {"outcome": [orjson.dumps(asdict(outcome)).decode() for outcome in _whole(self.assess(shards))]}

    def assess(self, shards: Iterable[Shard]) -> Iterator[ShardOutcome]:
        """Assess shards, several images (also of different shards) at a time; yield each image, and each written file.

        A shard with missing rows after Ctrl-C or a limit is written and marked incomplete. The next try or run assesses
        the missing images.
        """
        under_way = dict[int, _OpenShard]()
        to_row = rows_with_fit_inputs(self.program)
        jobs = self._jobs(shards, under_way)
        try:
            for job, outcome in assess_many(self.program, jobs, self.run.workers, to_row, self.stop_rule.should_stop):
                assert isinstance(job, _PlacedJob)
                self._keep(under_way[job.shard], job, outcome)
                failures = [failure_text(job, outcome)] if isinstance(outcome, Exception) else []
                yield ShardOutcome(job.shard, failures=failures, images=1, is_part=True)
                yield from self._finished(under_way)
            yield from self._finished(under_way)
        except LimitReached as limit:
            self.stop_rule.ended_by = limit
        finally:
            # Finished rows are also kept at Ctrl-C, and when the caller stops reading.
            for state in under_way.values():
                if state.rows:
                    self._write(state, complete=False)
        if self.stop_rule.ended_by:
            yield ShardOutcome(-1, stopped_by=self.stop_rule.gave_up or str(self.stop_rule.ended_by))

    def _jobs(self, shards: Iterable[Shard], under_way: dict[int, _OpenShard]) -> Iterator[_PlacedJob]:
        for shard in shards:
            state = under_way[shard.number] = _OpenShard(shard, self._kept(shard))
            begun = {**state.rows}
            try:
                for place, job in enumerate(islice(jobs_of(shard, self.run.question, state.skipped), shard.limit)):
                    if current().limits.halted.is_set():
                        return
                    is_kept = place in begun and is_unchanged(job, begun[place])
                    is_retry = is_kept and self.run.retry and lacking(begun[place]) == UNSCORED
                    if is_retry or not is_kept:
                        state.jobs += 1
                        yield _PlacedJob(**vars(job), shard=shard.number, place=place, is_retry=is_retry)
            except BrokenDataSet as error:
                state.broken = str(error)
            state.read = True

    def _kept(self, shard: Shard) -> dict[int, Row]:
        """Return the assessed rows that an earlier run wrote into a shard."""
        stamp = self.folder.stamps([shard.number])[shard.number]
        own = run_fingerprint(self.run.settings), shard.digest(self.run.question)
        if stamp is None or (stamp.fingerprint, stamp.digest) != own:
            return {}
        rows = self.folder.of_shard(shard.number, SCHEMA.names)
        return {columns["place"]: row_of(columns) for columns in rows if columns["error"] is None}

    def _keep(self, state: _OpenShard, job: _PlacedJob, outcome: Row | Exception) -> None:
        state.jobs -= 1
        state.reported += 1
        row = outcome if isinstance(outcome, dict) else failed_row(outcome, job)
        if isinstance(outcome, Exception):
            state.has_temporary_error |= isinstance(outcome, TEMPORARY)
            if job.is_retry:  # an error does not replace a result
                return
            row |= {"query": job.asked, "image_sha256": hash_of(job.image)}
            row["reference_sha256"] = None if job.reference is None else hash_of(job.reference)
        state.rows[job.place] = {**row, "run_fingerprint": fingerprint_of(job, self.run.settings)}

    def _finished(self, under_way: dict[int, _OpenShard]) -> Iterator[ShardOutcome]:
        for number, state in [*under_way.items()]:
            if state.read and not state.jobs:
                del under_way[number]
                self._write(state, complete=not (state.has_temporary_error or state.broken))
                yield ShardOutcome(number, state.broken, images=len(state.rows) - state.reported)

    def _write(self, state: _OpenShard, *, complete: bool) -> None:
        shard = state.shard
        stamp = ShardStamp(
            run_fingerprint(self.run.settings),
            shard.digest(self.run.question),
            **counts_of(state.rows.values()),
            skipped=dict(state.skipped),
            complete=complete,
            limit=shard.limit,
        )
        self.folder.write_shard(shard.number, state.rows, stamp)


def _whole(outcomes: Iterable[ShardOutcome]) -> list[ShardOutcome]:
    """Return the outcomes of one shard without its parts, with what these report."""
    given = [*outcomes]
    images, failures = sum(each.images for each in given), [line for each in given for line in each.failures]
    ended = [each for each in given if not each.is_part]
    return [replace(each, images=images, failures=failures[:MOST_FAILURES]) for each in ended[:1]] + ended[1:]


def is_unchanged(job: Job, row: Mapping[str, Any]) -> bool:
    """Return whether the image and the reference of a job have the bytes from which its row was made.

    Remote images are not read again for this: a change of their stamps changes the digest of the shard.
    """
    sources = {"image_sha256": job.image, "reference_sha256": job.reference}
    return all(
        row.get(name) == (None if source is None else hash_of(source))
        for name, source in sources.items()
        if not isinstance(source, AddressedImage)
    )


def run_fingerprint(settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of a run, in the footer of each shard."""
    return digest(settings)
