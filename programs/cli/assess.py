"""``agenticiqa assess``: assess images; print each result, or append it to a file, as soon as it is there."""

from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.find_jobs import STDIN, find_jobs, read_jobs
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job, failed_row
from agenticiqa.programs.batch.plan_run import plan_run
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import outputs, overview
from agenticiqa.programs.cli.options import settings_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import json_text, print_error, print_note
from agenticiqa.programs.cli.ranking import is_ranked, ranking_of
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.result import Assessment


def run(args: Namespace) -> int:
    """Assess the images and print or append each result; the exit status says whether all were assessed.

    Modules that one photo does not need (batches, pictures) are imported only if an option needs them.
    """
    if args.parquet:
        from agenticiqa.programs.cli import sharded

        return sharded.run(args)
    if args.engine != "local":
        raise UserError("--engine ray needs --parquet DIR: name the folder for its Parquet files")
    file = None if args.jsonl in (None, STDIN) else Path(args.jsonl)
    if args.resume and not file:
        raise UserError("--resume needs --jsonl FILE: name the file to continue")
    if args.batch and not file:
        raise UserError("--batch takes hours and may need several runs: name a file for the results with --jsonl FILE")
    overview.check_overview(args)
    config, workers, limits = settings_from(args)
    question = (args.query, args.reference, args.resize_reference, args.options)
    found = read_jobs(args.jobs, *question) if args.jobs else find_jobs(args.images, *question)
    print_error(*found.not_assessed)
    if not found.jobs:
        return USAGE
    if args.batch or args.dry_run:
        from agenticiqa.programs.cli import batching

        config = batching.check_batches(args, config, limits, found.jobs)
        if args.dry_run:
            batching.print_expected(args, config, found.jobs, as_json=args.json)
            return SOME_FAILED if found.problems else OK
    check_outputs(args, found.jobs, args.jobs, args.config)
    to_dict: Callable[[Assessment], Row] = Assessment.to_dict
    if args.save_maps:
        from agenticiqa.programs.pictures import draw

        to_dict = draw.drawing_into(args.save_maps, [job.image for job in found.jobs], args.images)
    summary = Summary(
        len(found.jobs) + len(found.problems), skipped=dict(found.skipped), failed=list(map(str, found.problems))
    )
    stdout_errors: list[OSError] = []
    install(config)
    with ExitStack() as stack:
        stack.enter_context(within(limits))
        results = stack.enter_context(outputs.open_results(file, args.resume)) if file else None
        if results and args.batch:
            stack.enter_context(batching.within_batches(args, results.path, limits))
        plan = plan_run(config, found.jobs, results)
        summary.assessed_before = len(found.jobs) - len(plan.todo)
        summary.assessed_again, summary.settings = dict(plan.again), plan.settings
        if summary.assessed_before or plan.again:
            print_note(outputs.resumed_text(summary))
        if results:
            stack.callback(outputs.save_summary, summary, results)
            write: outputs.Write = outputs.Appending(results, plan.settings)
        elif args.json:
            write = stack.enter_context(
                outputs.one_document(plan.todo, found.problems, is_single(args, found.jobs), stdout_errors)
            )
        elif is_ranked(args, len(plan.todo)):
            write = stack.enter_context(ranking_of(summary))
        else:
            card = partial(outputs.print_card, with_replans=not args.verbose)  # the steps of -v have shown them
            write = outputs.print_line if args.jsonl == STDIN else card
        fail = write if args.json and not results else None
        if args.jsonl == STDIN:
            fail = outputs.print_line
            for problem in found.problems:
                print(json_text(failed_row(str(problem))), flush=True)
        entries: overview.Entries = {}
        if overview.wants_overview(args):
            shown = args.json or args.jsonl or not overview.replaces_results(args)
            write = overview.collect_entries(write if shown else None, entries, stdout_errors)
            fail = outputs.until_stdout_fails(fail, stdout_errors)
        to_row = rows_with_fit_inputs(plan.program, to_dict)
        with outputs.hint_to_resume(results, summary):
            errors = [*found.problems, *outputs.assess_and_write(plan, workers, to_row, write, summary, fail)]
        kept = results if results and outputs.is_kept(results) else None
        dropped = outputs.drop_replaced(kept) if kept else 0
        if overview.wants_overview(args) and kept:
            entries |= overview.entries_in(kept, found.jobs, plan)
    if kept:
        print_note(outputs.kept_text(kept, len(summary.failed), dropped))
    if args.save_maps and summary.assessed:
        print_note(f"Pictures were saved in {args.save_maps}")
    answered = summary.assessed + summary.assessed_before - summary.unscored
    place = printable_path(kept.path) if kept else None
    if unfitted := outputs.unfitted_text(config, Counter(job.asked for job in found.jobs), answered, place):
        print_note(unfitted)
    status = overview.show_overview(args, entries, summary.failed)
    if summary.unscored:
        again = "the same command with --resume" if file else None
        print_error(outputs.unscored_text(summary.unscored, summary.assessed, again))
    if summary.incomplete:
        print_error(outputs.incomplete_text(summary.incomplete))
    if summary.not_assessed:
        then = f"; run the same command with --resume to continue {file}" if file else ""
        print_error(f"stopped; {summary.not_assessed} images were not assessed{then}")
    if stdout_errors:
        raise stdout_errors[0]
    if results and not kept:
        return SOME_FAILED
    if not errors and not summary.not_assessed:
        return UNSCORED if status == OK and summary.unscored else status
    nothing = not summary.assessed and not summary.assessed_before
    return USAGE if nothing and errors and all(isinstance(error, UserError) for error in errors) else SOME_FAILED


def is_single(args: Namespace, jobs: list[Job]) -> bool:
    """Return whether a single image was named: its JSON is one object, while that of a folder is always a list."""
    return not args.jobs and len(args.images) == len(jobs) == 1 and not Path(args.images[0]).is_dir()
