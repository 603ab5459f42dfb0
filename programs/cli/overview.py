"""Show all results of ``assess`` together: a contact sheet, a CSV, the worst images, a limit for the score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import saved_rows
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.output_paths import write_all
from agenticiqa.programs.cli.printable import counted, print_error
from agenticiqa.programs.cli.sinks import RunState, Sink
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, UNSCORED, worst
from agenticiqa.programs.cli.views import View, files_of, print_instead, writes_files
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.sources import StoredImage
from agenticiqa.programs.page.entry import RESULTS, Entry, SheetCard, entry_of, result_card, worst_key
from agenticiqa.programs.page.result_tables import lowest, ranking, results_data
from agenticiqa.programs.result_row import fault_of

Entries = dict[Job, Entry]


def check_overview(args: AssessOptions) -> None:
    """Raise UserError for options that cannot be applied, before any image is assessed."""
    if args.fail_under is not None and not 1 <= args.fail_under <= 5:
        raise UserError(f"--fail-under must be a score from 1 to 5, got {args.fail_under:g}")


def wants_overview(args: AssessOptions) -> bool:
    """Return whether any option of the overview was given."""
    return replaces_results(args) or args.fail_under is not None


def replaces_results(args: AssessOptions) -> bool:
    """Return whether stdout shows the overview instead of each result."""
    return bool(args.worst or writes_files(args))


class Overview(Sink):
    """The tables of all results of the run, and the outputs of ``--worst`` and ``--fail-under``.

    With a results file, results of earlier runs are included. An interrupted run has no overview.
    """

    def __init__(self, args: AssessOptions, state: RunState) -> None:
        self._args, self._state = args, state
        self._entries: Entries = {}

    def write(self, job: Job, row: Row) -> None:
        """Keep the fields that the overview shows."""
        self._entries[job] = entry_of(row)

    def close(self) -> int:
        """Write and print the requested outputs; return OK, BELOW, UNSCORED, or SOME_FAILED for an unwritten file."""
        state = self._state
        if state.results and (file := state.kept_file):
            self._entries |= entries_in(saved_rows(state.plan.jobs, state.results, state.plan.settings), file)
        return show_all(self._args, self._entries, state.summary.failed)


def show_all(args: AssessOptions, entries: Entries, failed: Sequence[str]) -> int:
    """Write and print the requested outputs; return OK, BELOW, UNSCORED, or SOME_FAILED for an unwritten file."""
    entries = dict(sorted(entries.items(), key=lambda item: worst_key(item[1])))
    in_order = [*entries.values()]
    view = results_view(entries, failed)
    done = write_all(files_of(args, view))
    if done and not any(done) and not (args.json or args.jsonl or args.parquet):
        print_instead(view)
    if args.worst:
        render.print_table(lowest([entry for entry in in_order if entry.score is not None][: args.worst]))
    return worst(OK if all(done) else SOME_FAILED, _status_below(in_order, args.fail_under))


def results_view(entries: Entries, failed: Sequence[str]) -> View:
    """Return what is shown of all results, in their order: tables, and the contact sheet with the failures."""
    in_order = [*entries.values()]
    cards = {job: result_card(entry) for job, entry in entries.items()}
    title = f"Image quality: {counted(len(entries), 'image')}"
    return View(
        tables=[ranking(in_order)],
        data=[results_data(in_order)],
        page=lambda page: sheet_text(page, cards, title, failed),
        page_name="contact sheet",
    )


def entries_in(rows: Iterable[tuple[Job, Row]], place: Path | str) -> Entries:
    """Return an entry for each result that was saved in ``place``; an invalid row is reported and left out."""
    entries: Entries = {}
    for job, row in rows:
        if why := fault_of(row):
            print_error(f"{printable_path(place)}: the row of {job.name} is invalid and was left out ({why})")
            continue
        entries[job] = replace(entry_of(row), image=job.name)
    return entries


def _status_below(entries: Sequence[Entry], limit: float | None) -> int:
    """Report entries below ``--fail-under``, or without a score; return the status for them."""
    if limit is None:
        return OK
    below = [entry for entry in entries if entry.score is not None and entry.score < limit]
    if below:
        print_error(
            f"{len(below)} of {len(entries)} images score below {limit:g}. The lowest score is "
            f"{below[0].score:.2f}: {below[0].image}"
        )
    unscored = [entry.image for entry in entries if entry.score is None]
    if unscored:
        print_error(
            f"{len(unscored)} of {len(entries)} images have no score to compare with --fail-under {limit:g}. The "
            f"first is {unscored[0]}"
        )
    if below:
        return BELOW
    return UNSCORED if unscored else OK


def sheet_text(
    page: Path, cards: Mapping[Job, SheetCard], title: str, failed: Sequence[str] = (), template: str = RESULTS
) -> str:
    """Return the contact sheet of these images, with a line for each image that ``failed``.

    Its thumbnails are written to a folder beside ``page``. Raises OSError.
    """
    from agenticiqa.programs.page.sheet import contact_sheet  # imports of Jinja
    from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, write_thumbnails

    in_order = sorted(cards, key=lambda job: job.image.place if isinstance(job.image, StoredImage) else ("", 0))
    requests = [ThumbnailRequest(job.image, cards[job].entry.sha256) for job in in_order]
    files = write_thumbnails(requests, folder_beside(page), workers=available_cores())
    thumbnails = dict(zip(in_order, render.progress(files, len(requests), "thumbnails"), strict=True))
    return contact_sheet([*cards.values()], [thumbnails[job] for job in cards], page, title, failed, template)
