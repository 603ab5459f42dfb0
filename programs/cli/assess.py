"""``agenticiqa assess``: judge images and print each result, or append it to a file, as it is finished."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from agenticiqa.programs.backends.limits import within
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.find_jobs import STDIN, find_jobs, read_jobs
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import RunPlan, plan_run
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import tables
from agenticiqa.programs.cli.completing import complete_files, complete_folders
from agenticiqa.programs.cli.fusing import show_default, show_fitted
from agenticiqa.programs.cli.judging import judge_and_write
from agenticiqa.programs.cli.options import (
    add_backend_arguments,
    add_dry_run_argument,
    add_workers_argument,
    config_from,
    limits_from,
    workers_from,
)
from agenticiqa.programs.cli.outputs import (
    Appending,
    Write,
    complain,
    kept_text,
    one_document,
    open_results,
    print_card,
    print_card_below_steps,
    print_line,
    resumed_text,
    save_summary,
    told_to_resume,
    unscored_text,
)
from agenticiqa.programs.cli.overview import (
    Entries,
    add_overview_arguments,
    check_overview,
    entries_in,
    gathering,
    is_asked_for,
    replaces_results,
    show_overview,
)
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, UNSCORED, USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.finding import skipped_text
from agenticiqa.programs.pictures import draw
from agenticiqa.programs.questions.query_type import DEFAULT_QUERY
from agenticiqa.programs.result import Assessment

EXAMPLES = """\
examples:
  agenticiqa assess photo.jpg                                  rate its quality, 1 (bad) to 5 (excellent)
  agenticiqa assess photo.jpg --reference original.png         compare it with its pristine original
  agenticiqa assess photo.jpg --query "Is the sky noisy?"      ask anything about its quality
  agenticiqa assess photo.jpg --query "Main flaw? A. Blur B. Noise"
  agenticiqa assess --jobs questions.jsonl --jsonl answers.jsonl --resume
  agenticiqa assess album/ --jsonl scores.jsonl --resume       a folder; continue an earlier run
  agenticiqa assess photo.jpg --save-maps maps/                draw where it is bad: maps/photo.png
  agenticiqa assess album/ --html sheet.html --worst 10        a contact sheet, and the ten worst
  agenticiqa assess exports/ --fail-under 3                    for a script: status 4 if an image is worse
  agenticiqa assess photo.jpg --backend openai.gpt-4o          let a vision-language model look, too
  agenticiqa assess album/ --config mine.yaml --dry-run        estimate the cost, send nothing
  curl -s https://example.org/a.jpg | agenticiqa assess -      an image on stdin

exit status: 0 all judged, 1 some failed (named on stderr), 2 usage, or nothing could be judged,
3 none failed, but some have no score or answer, as the model gave no usable one (--resume judges them again),
4 all judged, but an image scores below --fail-under
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa assess``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    source = parser.add_mutually_exclusive_group(required=True)
    images = source.add_argument(
        "images", nargs="*", default=[], metavar="IMAGE", help="image files, folders of them, or - for stdin"
    )
    jobs = source.add_argument(
        "--jobs",
        metavar="FILE",
        help="judge the rows of FILE, JSON lines with image and, if they have their own, query, options and reference; "
        "- reads the lines from stdin",
    )
    reference = parser.add_argument(
        "--reference", metavar="R", help="the pristine original, or a folder of originals of the same file name (stem)"
    )
    parser.add_argument(
        "--resize-reference", action="store_true", help="scale a reference of another size to the image's"
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="compare what image and reference both show: a shift, a crop or another scale is found and undone",
    )
    parser.add_argument(
        "--query", metavar="Q", default=DEFAULT_QUERY, help=f'the question (default: "{DEFAULT_QUERY}")'
    )
    parser.add_argument(
        "--option",
        metavar="TEXT",
        action="append",
        dest="options",
        help="an answer to choose from, once for each of 2 to 26: the answer is then a letter, A for the first",
    )
    add_backend_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json", action="store_true", help="print one JSON object, or a list of them for several images"
    )
    results = output.add_argument(
        "--jsonl",
        metavar="FILE",
        help="append one JSON line for each image as it is finished, and write FILE.summary.json; - prints the lines",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="with --jsonl FILE: leave out images that FILE has a result of, for the same files, question and settings",
    )
    parser.add_argument(
        "--fuse",
        choices=("default", "auto"),
        default="default",
        help="auto, with --jsonl FILE: after 50 or more images that a model rated, find out from them how far it is to "
        "be trusted, and let FILE show the score of that; the default's stays beside it",
    )
    maps = parser.add_argument(
        "--save-maps",
        metavar="DIR",
        type=Path,
        help="draw each image that is judged, where it is bad, and its scores: PNGs in DIR, which replace earlier ones",
    )
    add_overview_arguments(parser)
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    for argument in (images, reference, jobs, results):
        complete_files(argument)
    complete_folders(maps)


def run(args: Namespace) -> int:
    """Judge the images and print or append each result; the exit status says whether all were judged."""
    file = None if args.jsonl in (None, STDIN) else Path(args.jsonl)
    if args.resume and not file:
        raise UserError("--resume continues a file: name it with --jsonl FILE")
    if args.fuse == "auto":
        if not file:
            raise UserError("--fuse auto changes scores after the last image: name a file for them with --jsonl FILE")
        if args.save_maps:
            raise UserError("--fuse auto changes scores after they are drawn: leave out --save-maps, or --fuse auto")
    check_overview(args)
    config = config_from(args)
    if args.align:
        config = config.model_copy(update={"align": True})
    workers, limits = workers_from(args, config), limits_from(args, config)
    asked = (args.query, args.reference, args.resize_reference, args.options)
    found = read_jobs(args.jobs, *asked) if args.jobs else find_jobs(args.images, *asked)
    for problem in found.problems:
        complain(str(problem))
    if found.skipped:
        complain(f"skipped {skipped_text(found.skipped)}")
    if not found.jobs:
        return USAGE
    if args.dry_run:
        tables.print_estimate(estimate(config, found.jobs), as_json=args.json)
        return SOME_FAILED if found.problems else OK
    images = [job.image for job in found.jobs]
    postprocess = draw.drawing_into(args.save_maps, images) if args.save_maps else Assessment.to_dict
    summary = Summary(
        len(found.jobs) + len(found.problems), skipped=dict(found.skipped), failed=list(map(str, found.problems))
    )
    with ExitStack() as stack:
        stack.enter_context(within(limits))
        results = stack.enter_context(open_results(file, args.resume)) if file else None
        plan = plan_run(config, found.jobs, results, partial(prepare, config, limits))
        summary.judged_before = len(found.jobs) - len(plan.todo)
        summary.judged_again, summary.settings = dict(plan.again), plan.settings
        if summary.judged_before or plan.again:
            print(resumed_text(summary), file=sys.stderr)
        if results:
            stack.callback(save_summary, summary, results)
            write: Write = Appending(results, plan.settings)
        elif args.json:
            write = stack.enter_context(one_document(plan.todo, single=summary.images == 1))
        else:
            card = print_card_below_steps if args.verbose else print_card
            write = print_line if args.jsonl == STDIN else card
        entries: Entries = {}
        if is_asked_for(args) and not results:
            shown = args.json or args.jsonl or not replaces_results(args)
            write = gathering(write if shown else None, entries)
        to_row = rows_with_fit_inputs(plan.program, postprocess)
        with told_to_resume(results, summary):
            errors = [*found.problems, *judge_and_write(plan, workers, to_row, write, summary)]
        fused = _fused(args, results, found.jobs, plan, summary) if results else None
        if is_asked_for(args) and results:
            entries = entries_in(results, found.jobs, plan)
    if results:
        print(kept_text(results), file=sys.stderr)
    if fused:
        print(fused, file=sys.stderr)
    if args.save_maps and summary.judged:
        print(f"Pictures are in {args.save_maps}", file=sys.stderr)
    below = show_overview(args, entries, summary.failed)
    if summary.unscored:
        complain(unscored_text(summary.unscored, summary.judged, "the same command with --resume" if file else None))
    if summary.not_judged:
        go_on = f"; the same command with --resume continues {file}" if file else ""
        complain(f"stopped; {summary.not_judged} images were not judged{go_on}")
    if not errors and not summary.not_judged:
        return BELOW if below else UNSCORED if summary.unscored else OK
    nothing = not summary.judged and not summary.judged_before
    return USAGE if nothing and errors and all(isinstance(error, UserError) for error in errors) else SOME_FAILED


def _fused(args: Namespace, results: ResultsFile, jobs: list[Job], plan: RunPlan, summary: Summary) -> str | None:
    """Let the file show the score that was asked for; a line about it. A file that cannot be written is told."""
    try:
        return show_fitted(results, jobs, plan, summary) if args.fuse == "auto" else show_default(results, jobs, plan)
    except OSError as error:
        return f"fusion: {printable_path(results.path)} cannot be rewritten ({error.strerror}), and stays as it was"
