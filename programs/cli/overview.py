"""Show all results of ``assess`` together: a contact sheet, a CSV, the worst images, a limit for the score."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.find_jobs import STDIN
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import RunPlan, absolute, offsets_of_latest
from agenticiqa.programs.batch.results_file import ResultsFile, Row, question_of
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.output_paths import write_all
from agenticiqa.programs.cli.outputs import Write, until_stdout_fails
from agenticiqa.programs.cli.printable import is_stdout, print_error, write_output
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, UNSCORED, worst
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path, write_atomically
from agenticiqa.programs.page.csv_text import csv_text
from agenticiqa.programs.page.entry import Entry, entry_of, with_caveats, worst_first
from agenticiqa.programs.result_row import ALSO_SHOWN, fault_of

Entries = dict[Job, Entry]

COLUMNS = (
    *("image", "score", "low", "high", "level", "distortion", "severity", "place", "answer"),
    *(*ALSO_SHOWN, "caveat"),
)


def check_overview(args: Namespace) -> None:
    """Raise UserError for options that cannot be applied, before any image is assessed."""
    if args.worst and (args.json or args.jsonl == STDIN):
        raise UserError("--worst prints a list to stdout: leave out --json, and give --jsonl a file instead of -")
    if args.fail_under is not None and not 1 <= args.fail_under <= 5:
        raise UserError(f"--fail-under must be a score from 1 to 5, got {args.fail_under:g}")
    if is_stdout(args.csv) and (args.json or args.jsonl == STDIN or args.worst):
        raise UserError(
            "--csv - prints the table to stdout: leave out --json, --jsonl - and --worst, or give --csv a file"
        )
    if is_stdout(args.html):
        raise UserError("--html needs a file, because thumbnails are written to a folder beside it: name a file")


def wants_overview(args: Namespace) -> bool:
    """Return whether any option of the overview was given."""
    return replaces_results(args) or args.fail_under is not None


def replaces_results(args: Namespace) -> bool:
    """Return whether stdout shows the overview instead of each result."""
    return bool(args.html or args.csv or args.worst)


def collect_entries(write: Write | None, entries: Entries, stdout_errors: list[OSError]) -> Write:
    """Return a function that adds each result to the entries, and writes it if ``write`` is given.

    An error of stdout is added to ``stdout_errors``.
    """
    show = until_stdout_fails(write, stdout_errors)

    def gather(job: Job, row: Row) -> None:
        entries[job] = entry_of(row)
        if show:
            show(job, row)

    return gather


def entries_in(results: ResultsFile, jobs: Sequence[Job], plan: RunPlan) -> Entries:
    """Return an entry for each job that has a result in the file, with the settings of this run.

    A path in a row is relative to the current folder or to the folder of the file, as with ``--resume``.
    """
    by_path = {(absolute(job.name, os.getcwd()), job.asked): job for job in jobs}
    folders = (os.getcwd(), os.path.dirname(os.path.realpath(results.path)))
    entries: Entries = {}
    for row in results.rows(offsets_of_latest(jobs, results, plan.settings)):
        keys = [(absolute(row["image"], folder), question_of(row)) for folder in folders]
        job = next(by_path[key] for key in keys if key in by_path)
        if why := fault_of(row):
            print_error(f"{printable_path(results.path)}: the row of {job.name} is invalid and was left out ({why})")
            continue
        entries[job] = replace(entry_of(row), image=job.name)
    return entries


def show_overview(args: Namespace, entries: Entries, failed: Sequence[str]) -> int:
    """Write and print the requested outputs, and return the exit status.

    The status is OK, BELOW or UNSCORED by ``--fail-under``, or SOME_FAILED if a file cannot be written. Such a file is
    reported, and the others are still written. If the results are nowhere else, the table is printed to stdout.
    """
    in_order = worst_first([*entries.values()])
    table = table_text(in_order)
    done = write_all(
        [
            ("contact sheet", args.html, lambda: write_sheet(args.html, entries, failed)),
            ("table", args.csv, lambda: write_output(args.csv, table)),
        ]
    )
    if done and not any(done) and not (args.json or args.jsonl):
        print_error("the results are printed to stdout instead")
        sys.stdout.write(table)
    if args.worst:
        scored = [entry for entry in in_order if entry.score is not None][: args.worst]
        lines = [[f"{entry.score:.2f}", entry.image, entry.finding] for entry in scored]
        render.print_lines(*with_caveats(scored, ("score", "image", "main distortion"), lines))
    status = OK if all(done) else SOME_FAILED
    if args.fail_under is None:
        return status
    below = [entry for entry in in_order if entry.score is not None and entry.score < args.fail_under]
    if below:
        print_error(
            f"{len(below)} of {len(in_order)} images score below {args.fail_under:g}. The lowest score is "
            f"{below[0].score:.2f}: {below[0].image}"
        )
    unscored = [entry.image for entry in in_order if entry.score is None]
    if unscored:
        print_error(
            f"{len(unscored)} of {len(in_order)} images have no score to compare with --fail-under "
            f"{args.fail_under:g}. The first is {unscored[0]}"
        )
    found = BELOW if below else UNSCORED if unscored else OK
    return worst(status, found)


def table_text(entries: Sequence[Entry]) -> str:
    """Return the entries as CSV (RFC 4180, UTF-8): scores in 1..5, an empty field for a missing value."""
    lines = [[getattr(entry, name, entry.shown.get(name, "")) for name in COLUMNS] for entry in entries]
    return csv_text(
        [COLUMNS, *([round(each, 4) if isinstance(each, float) else each for each in line] for line in lines)]
    )


def write_sheet(page: Path, entries: Entries, failed: Sequence[str]) -> None:
    """Write the contact sheet of these entries, with a line for each image that ``failed``. Raises OSError."""
    from agenticiqa.programs.page.sheet import contact_sheet  # imported here because they load Jinja
    from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, write_thumbnails

    wanted = [ThumbnailRequest(job.image, entry.sha256) for job, entry in entries.items()]
    made = write_thumbnails(wanted, folder_beside(page), workers=available_cores())
    thumbnails = [*render.progress(made, len(wanted), "thumbnails")]
    title = f"Image quality: {len(entries)} image{'s' if len(entries) != 1 else ''}"
    write_atomically(page, contact_sheet([*entries.values()], thumbnails, page, title, failed))
