"""``agenticiqa assess ... --parquet DIR``: assess in shards, on this machine or on a Ray cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from agenticiqa.configs import Config
from agenticiqa.configs.options import options_of
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import workers_for
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.job import SharedQuestion
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.batch.store import results_in
from agenticiqa.programs.cli import batching, render
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.options import given, models_of, print_models, settings_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.overview import check_overview, entries_in, show_all, wants_overview
from agenticiqa.programs.cli.printable import print_error, print_note
from agenticiqa.programs.cli.sinks import print_incomplete, print_unfitted, print_unscored
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, worst
from agenticiqa.programs.data_sets.kinds import LISTS, is_stream
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.scale.names import written_in
from agenticiqa.programs.scale.open_shard import jobs_named
from agenticiqa.programs.scale.run_shards import RunOfShards, assess_here, run_shards
from agenticiqa.programs.scale.shard_assessor import MOST_FAILURES, Engine, ShardOutcome, ShardRun
from agenticiqa.programs.scale.table import ShardFolder


def run(args: AssessOptions, folder: str) -> int:
    """Assess the named images into a Parquet file for each shard; the exit status says whether all succeeded."""
    others = [option for option in options_of(type(args)) if not option.with_shards]
    if unsuitable := given(args, others):
        raise UserError(f"{unsuitable[0]} does not work with --parquet: leave it out, or use --jsonl")
    names = (args.jobs,) if args.jobs else tuple(args.images)
    if args.jobs and not (is_stream(args.jobs) or args.jobs.lower().endswith(LISTS)):
        suffixes = " or ".join(LISTS)
        raise UserError(f"{args.jobs}: with --parquet, --jobs reads pipes, and files with the suffix {suffixes}")
    check_overview(args)
    config, workers, limits = settings_from(args)
    options = tuple(args.options or ()) or None
    question = SharedQuestion(args.query, options, args.reference, args.resize_reference, args.system_folders)
    if args.dry_run:
        return _print_expected(args, config, names, question)
    check_outputs(args, (), config, written=written_in(folder))
    settings = run_settings(AgenticIQA.from_config(config), config)
    print_models(config)
    if args.engine == "ray":  # --workers is the number of processes, each of which assesses some images at a time
        workers = 1 if config.is_offline else workers_for(models_of(config))
    shard_run = ShardRun(config, settings, question, folder, workers, names, args.image_column)
    shard_run = replace(shard_run, retry=args.resume, keep_going=args.keep_going)
    shown: set[str] = set()  # failures, of which a second try of a shard repeats some

    def watch(outcomes: Iterator[ShardOutcome], images: int | None) -> Iterator[ShardOutcome]:
        for outcome in render.progress(outcomes, images, size=lambda outcome: outcome.images):
            new = [failure for failure in outcome.failures if failure not in shown][: MOST_FAILURES - len(shown)]
            print_error(*new, *([one_line(outcome.broken)] if outcome.broken else []))
            shown.update(new)
            yield outcome

    with _engine(args, limits) as engine:
        ended = run_shards(shard_run, engine, args.shard_images, watch, args.limit)
    status = _reported(ended, folder)
    rated = ended.figures["assessed"] - ended.figures["unscored"]
    queries = {} if args.options else {args.query: rated}
    print_unfitted(config, queries, rated, folder)
    return worst(status, _show_overview(args, folder, ended)) if wants_overview(args) else status


@contextmanager
def _engine(args: AssessOptions, limits: RunLimits) -> Iterator[Engine]:
    if args.engine == "ray":
        from agenticiqa.programs.scale.on_ray import ray_engine

        with ray_engine(limits, args.workers, args.in_flight) as engine:
            yield engine
    else:
        with within(limits):
            yield assess_here


def _print_expected(args: AssessOptions, config: Config, names: Sequence[str], question: SharedQuestion) -> int:
    """Print the expected cost of a dry run, which reads each image's size, and what cannot be read."""
    problems: list[str] = []
    batching.print_expected(args, config, islice(jobs_named(names, question, problems, args.image_column), args.limit))
    print_error(*map(one_line, problems))
    return SOME_FAILED if problems else OK


def _show_overview(args: AssessOptions, folder: str, ended: RunOfShards) -> int:
    """Show all results in the folder together, also those of earlier runs; return the status for them."""
    failed = [*ended.problems, *ended.set_aside.values()]
    rows = islice(ShardFolder(folder).rows(), args.limit) if ended.stamps else ()
    return show_all(args, entries_in(results_in(rows, failed), folder), failed)


def _reported(ended: RunOfShards, folder: str) -> int:
    """Print the outcome of the run; return the exit status."""
    for problem in ended.problems:
        print_error(one_line(problem))
    counts, again = ended.figures, f"; run the same command again to continue {folder}"
    retry = "the same command with --resume"
    before = f" ({ended.assessed_before} shards were already finished)" if ended.assessed_before else ""
    print_note(
        f"{counts['assessed']} assessed, {counts['failed']} failed; {folder} has {counts['shards']} of "
        f"{len(ended.planned)} shards{before}"
    )
    if counts["failed"]:
        print_note(
            f"{folder}: the column error has the reason of each failure; run {retry} to assess these images again"
        )
    print_unscored(counts["unscored"], counts["assessed"], retry)
    print_incomplete(counts["incomplete"])
    if ended.stopped_by:
        print_error(one_line(ended.stopped_by))
    for number, why in sorted(ended.set_aside.items()):
        print_error(one_line(f"shard {number} failed: {why}"))
    if ended.unfinished:
        print_error(f"{ended.unfinished} shards are not finished{again}")
    if counts["failed"] or ended.problems or ended.set_aside or ended.unfinished:
        return SOME_FAILED
    return UNSCORED if counts["unscored"] else OK
