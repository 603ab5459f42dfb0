"""Yield the jobs of a shard, in order: its paths, or the images in a tar file, a table or a data set."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from agenticiqa.programs.batch.data_set_jobs import job_of, jobs_in_table, jobs_in_tar
from agenticiqa.programs.batch.job import Job, SharedQuestion
from agenticiqa.programs.data_sets.kinds import BrokenDataSet
from agenticiqa.programs.images.finding import skipped_problems
from agenticiqa.programs.scale.plan_shards import Shard, plan_shards


def jobs_of(shard: Shard, question: SharedQuestion, skipped: Counter[str]) -> Iterator[Job]:
    """Yield the jobs of a shard. Raises BrokenDataSet after the readable jobs if its file is damaged or missing.

    ``skipped`` counts images in a tar file that cannot be assessed, as ``images.finding`` does in folders.
    """
    if shard.kind == "tar":
        yield from jobs_in_tar(shard.file, question, skipped, at_once=True)
    elif shard.kind == "rows":
        yield from jobs_in_table(shard.file, shard.column, question, shard.start, shard.stop, at_once=True)
    else:
        yield from (job_of(entry, question) for entry in shard.entries)


def jobs_named(
    names: Iterable[str], question: SharedQuestion, problems: list[str], column: str | None = None
) -> Iterator[Job]:
    """Yield the jobs of all shards of these names, and add to ``problems`` what a run would report about the files."""
    skipped = Counter[str]()
    for shard in plan_shards(names, question, problems, column=column):
        try:
            yield from jobs_of(shard, question, skipped)
        except BrokenDataSet as error:
            problems.append(str(error))
    problems += skipped_problems(skipped)


def first_images(shards: Iterable[Shard], question: SharedQuestion, limit: int) -> Iterator[Shard]:
    """Yield all shards, limited to the first ``limit`` images of all; tar files up to there are read to count them."""
    for shard in shards:
        size = _size(shard, question, limit + 1) if limit else 1
        yield shard if size <= limit else replace(shard, limit=limit)
        limit = max(limit - size, 0)


def _size(shard: Shard, question: SharedQuestion, most: int) -> int:
    """Return the number of images in a shard; counting a tar file ends at ``most``."""
    if shard.images is not None:
        return shard.images
    size = 0
    with suppress(BrokenDataSet):
        for _ in islice(jobs_in_tar(shard.file, question, Counter()), most):
            size += 1
    return size
