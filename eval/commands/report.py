"""``agenticiqa report``: write a page and tables about the runs of ``agenticiqa evaluate``."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agenticiqa.eval.commands.arguments import ReportOptions
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.page.kept_run import KeptRun, read_run
from agenticiqa.eval.report.page.pages import headline_figures, page_text, report_of
from agenticiqa.eval.report.plots import file_of, interval_plot, refuse_other_formats, scatter_plot
from agenticiqa.eval.report.rating_tables import numbers
from agenticiqa.eval.report.run_scores import names_of, runs_below
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.batch.store import results_in
from agenticiqa.programs.cli.output_paths import Output, check_outputs, write_all
from agenticiqa.programs.cli.overview import results_view
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, files_of, json_of, show
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.entry import entry_of, worst_key
from agenticiqa.programs.page.forms import markdown
from agenticiqa.programs.page.table import Table, data_table
from agenticiqa.programs.scale.names import holds_results


def run(args: ReportOptions) -> int:
    """Read the runs, and write the requested outputs; without any option, print the table as Markdown."""
    refuse_other_formats(args.plot, args.plot_intervals)
    check_outputs(args)
    if saved := [place for place in args.runs if holds_results(place)]:
        if len(saved) < len(args.runs) or args.name or args.mos_range or args.plot or args.plot_intervals:
            raise UserError(
                f"{saved[0]}: results of assess have no MOS; name only such results, without --name, --mos-range and "
                "plots"
            )
        return _show_results(args)
    of_scorers = [runs_below(place) for place in args.runs]  # a folder may have runs of several scorers
    every = [[*below.values()] or [place] for place, below in zip(args.runs, of_scorers, strict=True)]
    folders = [*dict.fromkeys(run for runs in every for run in runs)]
    runs = [read_run(folder, name) for folder, name in zip(folders, names_of(folders, args.name or ()), strict=True)]
    questions, ratings = ([run for run in runs if run.asks_questions is kind] for kind in (True, False))
    if questions and ratings:
        first, second = questions[0].folder, ratings[0].folder
        raise UserError(f"{first} has answers to questions, but {second} has ratings: report on each separately")
    tables = [replace(report_of(run).tables[0], title=f"{run.name}: {run.about}") for run in runs]
    data = numbers({run.name: run.figures for run in ratings}) if ratings else together(questions)
    view = View(
        tables,
        data=[data],
        document={run.name: run.figures for run in runs},
        page=lambda page: page_text(runs, page, args.mos_range),
    )
    done = write_all([*files_of(args, view), *_plots(args, runs), json_of(args, view)])
    if not done:
        print(markdown(tables), end="")
    return OK if all(done) else SOME_FAILED


def _plots(args: ReportOptions, runs: Sequence[KeptRun]) -> Iterator[Output]:
    """Yield the plots that the options name. Raises UserError for a scatter plot of questions."""
    if scatter := args.plot:
        if runs[0].asks_questions:
            raise UserError(f"{runs[0].folder} has answers to questions and no MOS: use --plot-intervals for accuracy")
        yield Output("plot", scatter, lambda: file_of(scatter_plot(runs), scatter.suffix))
    if intervals := args.plot_intervals:
        figures, axis = headline_figures(runs), "Accuracy" if runs[0].asks_questions else "SRCC"
        if len(runs) == 1 and not runs[0].asks_questions:
            figures = [(system["name"], Interval(**system["srcc"])) for system in runs[0].figures["systems"]]
        yield Output("plot of intervals", intervals, lambda: file_of(interval_plot(figures, axis), intervals.suffix))


def _show_results(args: ReportOptions) -> int:
    """Write the contact sheet and the table of saved results of ``assess``, or print the images by score."""
    from agenticiqa.programs.scale.table import store_at  # an import of pyarrow

    failed: list[str] = []
    rows = (_with_found(row, place.parent) for place in args.runs for row in store_at(place).rows())
    entries = {job: entry_of(row) for job, row in results_in(rows, failed)}
    in_order = dict(sorted(entries.items(), key=lambda item: worst_key(item[1])))
    return OK if show(args, results_view(in_order, failed)) else SOME_FAILED


def _with_found(row: Row, folder: Path) -> Row:
    """Return a row with paths of its files, which it names relative to the current folder or to that of the results."""
    found = {name: str(folder / row[name]) for name in ("image", "reference", "map") if row.get(name)}
    return row | {name: path for name, path in found.items() if os.path.exists(path) and not os.path.exists(row[name])}


def together(runs: Sequence[KeptRun]) -> Table:
    """Return the first tables of all runs as one, with the names of the runs; cells that a run lacks are empty."""
    rows = [{"run": run.name} | record for run in runs for record in report_of(run).tables[0].records]
    headings = dict.fromkeys(heading for row in rows for heading in row)
    return data_table(headings, [[row.get(heading) for heading in headings] for row in rows])
