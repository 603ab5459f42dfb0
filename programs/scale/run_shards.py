"""Run over shards: plan them, reuse results of earlier runs, try the others twice, and count the results."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from agenticiqa.configs.user_files import STDIN
from agenticiqa.programs.batch.job import SharedQuestion
from agenticiqa.programs.batch.plan_run import refuse_other_settings
from agenticiqa.programs.batch.results_file import locked_by
from agenticiqa.programs.data_sets.kinds import BrokenDataSet, is_stream
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import skipped_problems
from agenticiqa.programs.images.own import RUN, run_folder
from agenticiqa.programs.scale.names import LOCK, PLAN, SUCCESS
from agenticiqa.programs.scale.open_shard import first_images, jobs_of
from agenticiqa.programs.scale.plan_shards import Shard, plan_shards
from agenticiqa.programs.scale.shard_assessor import (
    Engine,
    PlannedShard,
    ShardAssessor,
    ShardOutcome,
    ShardRun,
    is_unchanged,
    run_fingerprint,
)
from agenticiqa.programs.scale.table import ShardFolder, ShardStamp, shard_name

TRIES = 2  # attempts at a shard that cannot be read to its end, or that a stopped worker did not finish
NO_FILE = (
    f"no file was written in {TRIES} attempts: the worker stopped, or does not write to this machine's disk; check its "
    "log, and use an output folder that all machines share"
)


@dataclass
class RunOfShards:
    """The result of a run: the stamps of written shards, the reasons of shards ``set_aside``, and of an early end.

    ``again`` has the numbers of finished shards with images that are assessed again.
    """

    planned: list[PlannedShard]
    problems: list[str]
    assessed_before: int = 0
    stamps: dict[int, ShardStamp] = field(default_factory=dict)
    set_aside: dict[int, str] = field(default_factory=dict)
    stopped_by: str = ""
    again: set[int] = field(default_factory=set)

    def is_finished(self, shard: PlannedShard) -> bool:
        """Return whether the file of a shard has all images that this run requests."""
        stamp = self.stamps.get(shard.number)
        if stamp is None or not stamp.complete:
            return shard.limit == 0
        return stamp.limit is None or (shard.limit is not None and shard.limit <= stamp.limit)

    @property
    def todo(self) -> list[PlannedShard]:
        """The shards with images that this run has still to assess."""
        return [shard for shard in self.planned if shard.number in self.again or not self.is_finished(shard)]

    @property
    def unfinished(self) -> int:
        """The number of unfinished shards, without those set aside."""
        return sum(shard.number not in self.set_aside for shard in self.todo)

    @property
    def has_answers(self) -> bool:
        """Whether an image of the shards that have a file has a score or an answer."""
        return any(stamp.images > stamp.failed + stamp.unscored for stamp in self.stamps.values())

    @property
    def figures(self) -> dict[str, int]:
        """The counts over the shards that have a file, as in ``_SUCCESS``."""
        stamps = self.stamps.values()
        images, failed = sum(stamp.images for stamp in stamps), sum(stamp.failed for stamp in stamps)
        counts = {"images": images, "assessed": images - failed, "failed": failed}
        of_the_model = {name: sum(getattr(stamp, name) for stamp in stamps) for name in ("unscored", "incomplete")}
        return {**counts, **of_the_model, "shards": len(stamps)}


def run_shards(
    run: ShardRun,
    engine: Engine,
    images: int,
    watch: Callable[[Iterator[ShardOutcome], int | None], Iterable[ShardOutcome]] = lambda outcomes, images: outcomes,
    limit: int | None = None,
) -> RunOfShards:
    """Assess the images of ``run.names`` into ``run.output``, except finished shards, and write ``_SUCCESS``.

    A folder belongs to one set of names, question and settings. A shard is assessed again if images in it were added,
    changed or removed. ``watch`` gets the outcomes of each try and the number of images in them, if it is known, and
    returns the outcomes. With ``limit``, only the first images are assessed; a later run with a larger limit, or
    without one, continues. Raises UserError for a folder with other settings, a folder that another process writes to,
    and names without images.
    """
    folder = ShardFolder(run.output)
    with ExitStack() as stack:
        if folder.is_local:
            stack.enter_context(_locked(Path(folder.root)))
        _record_settings(folder, run, images)
        problems: list[str] = []
        shards = plan_shards(run.names, run.question, problems, images, run.image_column)
        shards = shards if limit is None else first_images(shards, run.question, limit)
        planned = _write_plan(folder, shards, run.question)
        if not planned:
            raise UserError(
                problems[0] if problems else "no images to assess: name images, folders, Parquet files or tar files"
            )
        result = RunOfShards(planned, problems)
        fingerprint = run_fingerprint(run.settings)
        result.stamps = _files_of(folder, planned, fingerprint)
        wanted = [shard for shard in planned if shard.limit != 0]
        for shard in wanted:
            if result.is_finished(shard) and not _is_current(folder, shard, run.question):
                folder.remove(shard_name(shard.number))
                del result.stamps[shard.number]
        result.assessed_before = sum(map(result.is_finished, wanted))
        if run.retry:
            result.again = {shard.number for shard in wanted if _may_improve(shard, result.stamps.get(shard.number))}
        for _ in range(TRIES):
            if result.stopped_by or not result.todo:
                break
            folder.remove(SUCCESS)
            begun, counts = replace(run, accepted=result.has_answers), [shard.images for shard in result.todo]
            total = None if None in counts else sum(filter(None, counts))
            for outcome in watch(engine(begun, result.todo), total):
                if outcome.is_part:
                    continue
                result.stopped_by = result.stopped_by or outcome.stopped_by
                result.set_aside.pop(outcome.number, None)
                result.again.discard(outcome.number)
                if outcome.broken:
                    result.set_aside[outcome.number] = outcome.broken
            # The written files count, not the engine's report: a worker may have stopped between the two.
            result.stamps = _files_of(folder, planned, fingerprint)
        if not result.stopped_by:
            unwritten = [shard.number for shard in result.todo if shard.number not in result.stamps]
            result.set_aside = dict.fromkeys(unwritten, NO_FILE) | result.set_aside
        skipped = Counter[str]()
        for shard in planned:
            stamp = result.stamps.get(shard.number)
            skipped.update(stamp.skipped if stamp else {})
            if stamp and not stamp.images:
                problems.append(f"{shard.file}: expected images in this file, found none")
        problems += skipped_problems(skipped)
        if not result.todo and all(shard.limit is None for shard in planned):
            _write_success(folder, {**result.figures, "fingerprint": fingerprint})
        return result


def assess_here(run: ShardRun, todo: Sequence[PlannedShard]) -> Iterator[ShardOutcome]:
    """Run the shards on this machine, with ``assess_many``, without a pause between shards."""
    assess = ShardAssessor(run)
    return assess.assess(Shard(**orjson.loads(assess.folder.read(PLAN, shard.start, shard.end))) for shard in todo)


def _files_of(folder: ShardFolder, planned: Sequence[PlannedShard], fingerprint: str) -> dict[int, ShardStamp]:
    """Return the stamps of this run's files, by number; remove files of shards that are no longer in the plan."""
    digests = {shard.number: shard.digest for shard in planned}
    numbers = folder.shards()
    for number in set(numbers) - digests.keys():
        folder.remove(shard_name(number))
    stamps = folder.stamps([number for number in numbers if number in digests])
    return {
        number: stamp
        for number, stamp in stamps.items()
        if stamp and (stamp.fingerprint, stamp.digest) == (fingerprint, digests[number])
    }


def _is_current(folder: ShardFolder, planned: PlannedShard, question: SharedQuestion) -> bool:
    """Return whether the images and references of a finished shard have the bytes that were read.

    A remote file is not read again for this, as its stamp is part of the shard's digest.
    """
    if "://" in planned.file:
        return True
    shard = Shard(**orjson.loads(folder.read(PLAN, planned.start, planned.end)))
    rows = {row["place"]: row for row in folder.of_shard(planned.number, ("place", "image_sha256", "reference_sha256"))}
    jobs = enumerate(islice(jobs_of(shard, question, Counter()), planned.limit))
    try:
        are_unchanged = all(is_unchanged(job, rows.pop(place, {})) for place, job in jobs)
    except BrokenDataSet:
        return False
    return are_unchanged and (not rows or planned.limit is not None)


def _may_improve(shard: PlannedShard, stamp: ShardStamp | None) -> bool:
    """Return whether the file of a shard has images without a score, and none beyond those that this run requests."""
    return stamp is not None and stamp.failed + stamp.unscored > 0 and stamp.limit == shard.limit


def _write_plan(folder: ShardFolder, shards: Iterable[Shard], question: SharedQuestion) -> list[PlannedShard]:
    """Write the shards, one JSON line each; return the place of each line."""
    planned: list[PlannedShard] = []

    def lines() -> Iterator[bytes]:
        end = 0
        for shard in shards:
            line = orjson.dumps(asdict(shard), option=orjson.OPT_APPEND_NEWLINE)
            start, end = end, end + len(line)
            place = PlannedShard(shard.number, shard.digest(question), start, end, shard.file)
            planned.append(replace(place, limit=shard.limit, images=shard.images))
            yield line

    folder.write(PLAN, lines())
    return planned


def _record_settings(folder: ShardFolder, run: ShardRun, images: int) -> None:
    """Write the settings, or compare them with those of earlier shards. Raises UserError for a difference."""
    about = {
        "names": [STDIN if is_stream(name) else name for name in run.names],
        "question": asdict(run.question),
        "shard_images": images,
        "settings": run.settings,
        "fingerprint": run_fingerprint(run.settings),
    }
    earlier = folder.described(RUN)
    if not folder.shards():  # earlier settings are those of shards that were deleted
        folder.write(RUN, json.dumps(about, indent=2, ensure_ascii=False).encode() + b"\n")
    elif earlier is None:
        where = f"{run_folder(folder.place)}/{RUN}"
        raise UserError(f"{folder.place}: has shards but no {where}, which records their settings; name another folder")
    else:
        refuse_other_settings(folder.place, earlier, about)


def _write_success(folder: ShardFolder, about: dict[str, Any]) -> None:
    """Write the counts and the time, unless the file has the same counts."""
    earlier = folder.described(SUCCESS) or {}
    if about != {name: value for name, value in earlier.items() if name != "finished"}:
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        folder.write(SUCCESS, json.dumps({**about, "finished": finished}, indent=2).encode() + b"\n")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes of this machine; remove leftover files of a killed process."""
    described = Path(run_folder(str(folder)))
    try:
        for each in (folder, described):
            each.mkdir(parents=True, exist_ok=True)
        file = (described / LOCK).open("ab", buffering=0)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError(f"{folder}: results cannot be written there ({why}); name another folder") from error
    with file:
        if holder := locked_by(file):
            raise UserError(f"{folder}: {holder} is writing to it; wait until it ends, or name another folder")
        for leftover in (*folder.glob(".*.part"), *described.glob(".*.part")):
            leftover.unlink(missing_ok=True)
        yield
