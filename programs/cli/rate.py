"""``agenticiqa rate``: write a page on which a person rates photos of an album, for ``calibrate adapter``."""

import os
from collections.abc import Sequence
from pathlib import Path

from agenticiqa.configs import Config
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.find_jobs import FoundJobs, find_jobs
from agenticiqa.programs.batch.plan_run import absolute
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.cli.arguments import RateOptions
from agenticiqa.programs.cli.output_paths import Output, check_outputs, write_all
from agenticiqa.programs.cli.printable import counted, print_error, print_note
from agenticiqa.programs.cli.sinks import Printed, RunState, assess_into
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import path_of
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.page.rating import ScoredPhoto, rating_page, showings
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.table import store_at
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

COLUMNS = ("image", "quality_score")


def run(args: RateOptions) -> int:
    """Score the album, choose photos and write the page; the exit status says whether it was written."""
    album = printable_path(Path(args.album))
    if not os.path.isdir(args.album):
        raise UserError(f"{album}: expected a folder of photos; name the album")
    if args.reference and not args.pairs:
        raise UserError("--reference names the scene of each photo for --pairs: add --pairs, or leave it out")
    inputs = find_jobs([args.album], DEFAULT_QUERY, args.reference, system_folders=args.system_folders)
    print_error(*inputs.not_assessed)
    check_outputs(args, inputs.jobs)
    rows = store_at(args.scores).rows(COLUMNS) if args.scores else _assessed(inputs, args.workers)
    photos = _scored(inputs, [*rows], os.path.dirname(args.scores or ""))
    if lacking := len(inputs.jobs) - len(photos):
        print_error(f"{album}: no score for {counted(lacking, 'photo')} of {len(inputs.jobs)}; the page lacks them")
    order = showings(photos, args.images, args.seed, in_pairs=args.pairs)
    if not order:
        raise UserError(f"{album}: {counted(len(photos), 'photo')} with a score, too few for a page")

    page = Output("page", args.out, lambda: rating_page(order, Path(args.album), args.seed, args.out))
    (is_written,) = write_all([page])
    if is_written:
        print_note(f"Open it in a browser and give {len(order)} answers; at the end, it shows the next steps")
    return OK if is_written else SOME_FAILED


def _assessed(inputs: FoundJobs, workers: int | None) -> list[Row]:
    """Assess the photos offline, and print an error for each that fails; return the columns of the others."""
    rows: list[Row] = []
    state = RunState.of(Config(), inputs, workers or available_cores())
    sink = Printed(lambda row: rows.append({name: row[name] for name in COLUMNS}))
    assess_into([sink], state, Assessment.to_dict)
    return rows


def _scored(inputs: FoundJobs, rows: Sequence[Row], folder: str) -> list[ScoredPhoto]:
    """Return the photos with a score in the rows, where paths are relative to the current folder or to ``folder``."""
    here = os.getcwd()
    places = (os.path.realpath(folder), here)  # the later one replaces the earlier one
    by_path = {absolute(row["image"], place): row.get("quality_score") for place in places for row in rows}
    photos = []
    for job in inputs.jobs:
        score, path = by_path.get(absolute(job.name, here)), path_of(job.image)
        if score is not None and path:
            photos.append(ScoredPhoto(score, path, str(job.reference or "")))
    return photos
