"""``agenticiqa assess``: assess images into the outputs that the options name."""

from collections.abc import Sequence
from functools import partial

from agenticiqa.configs import Config
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.find_jobs import STDIN, find_jobs, read_jobs
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import sinks
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.card import print_result
from agenticiqa.programs.cli.options import refuse_without_needed, settings_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.overview import Overview, check_overview, replaces_results, wants_overview
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.ranking import Ranking, is_ranked
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.data_sets.kinds import holds_several
from agenticiqa.programs.errors import UserError


def run(args: AssessOptions) -> int:
    """Assess the images and print or append each result; the exit status says whether all were assessed.

    Modules that one photo does not need (batches, pictures) are imported only if an option needs them.
    """
    refuse_without_needed(args)
    if args.parquet:
        from agenticiqa.programs.cli import sharded

        return sharded.run(args, args.parquet)
    check_options(args)
    config, workers, limits = settings_from(args)
    question = (args.query, args.reference, args.resize_reference, args.options, args.image_column)
    if args.jobs:
        inputs = read_jobs(args.jobs, *question)
    else:
        inputs = find_jobs(args.images, *question, system_folders=args.system_folders)
    found = inputs.jobs  # no output may overwrite one of these, also without its turn in this run
    inputs.jobs = found[: args.limit]
    print_error(*inputs.not_assessed)
    if not inputs.jobs:
        return USAGE
    if args.batch or args.dry_run:
        from agenticiqa.programs.cli import batching

        config = batching.check_batches(args, config, limits, inputs.jobs)
        if args.dry_run:
            batching.print_expected(args, config, inputs.jobs, as_json=args.json)
            return SOME_FAILED if inputs.problems else OK
    check_outputs(args, found, config)
    to_row = sinks.to_row_from(args.save_maps, inputs.jobs, args.images)
    install(config)
    with within(limits), sinks.opened_results(args, limits) as results:
        state = sinks.RunState.of(config, inputs, workers, results, keep_going=args.keep_going)
        outputs = sinks_from(args, config, state)
        sinks.assess_into(outputs, state, rows_with_fit_inputs(state.plan.program, to_row))
        return sinks.closed(outputs)


def check_options(args: AssessOptions) -> None:
    """Raise UserError for options that cannot be applied, before any image is read."""
    is_saved = args.jsonl not in (None, STDIN)
    if args.resume and not is_saved:
        raise UserError("--resume needs --jsonl FILE: name the file to continue")
    if args.batch and not is_saved:
        raise UserError("--batch takes hours and may need several runs: name a file for the results with --jsonl FILE")
    check_overview(args)


def sinks_from(args: AssessOptions, config: Config, state: sinks.RunState) -> list[sinks.Sink]:
    """Return the outputs that the options name, in the order in which they are closed."""
    outputs: list[sinks.Sink] = []
    jobs, has_overview = state.plan.jobs, wants_overview(args)
    if state.results:
        outputs.append(sinks.SavedResults(state, state.results, stdout_may_fail=has_overview))
    elif args.json:
        outputs.append(sinks.JsonDocument(state, single=is_single(args, jobs)))
    elif args.jsonl == STDIN:
        outputs.append(sinks.Printed(sinks.print_json_line, jobs=jobs, with_failures=True, may_fail=has_overview))
    elif not replaces_results(args) and is_ranked(args, len(jobs)):
        outputs.append(Ranking(state))
    elif not replaces_results(args):
        card = partial(print_result, with_replans=not args.verbose)  # the steps of -v have shown them
        outputs.append(sinks.Printed(card, jobs=jobs, may_fail=has_overview))
    if args.save_maps:
        outputs.append(sinks.Maps(args.save_maps))
    outputs.append(sinks.FusionHint(config, state))
    if has_overview:
        outputs.append(Overview(args, state))
    return [*outputs, sinks.Totals(state)]


def is_single(args: AssessOptions, jobs: Sequence[Job]) -> bool:
    """Return whether a single image was named: its JSON is one object, while that of a folder is always a list."""
    return not args.jobs and len(args.images) == len(jobs) == 1 and not holds_several(args.images[0])
