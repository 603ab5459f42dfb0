"""``agenticiqa report``: a page, and tables, of the runs that ``agenticiqa evaluate`` kept."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from agenticiqa.eval.report.model import FORMS, ReportTable, comma_separated, latex, markdown
from agenticiqa.eval.report.page.kept_run import read_run
from agenticiqa.eval.report.page.pages import report_of, write_page
from agenticiqa.eval.report.rating_tables import numbers_table
from agenticiqa.eval.report.run_scores import names_of
from agenticiqa.eval.report.shards import shards_report
from agenticiqa.programs.cli.printable import is_stdout, write_output
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.scale.names import is_shard_folder


def run(args: Namespace) -> int:
    """Read the runs, and write what was asked for; without any option, the table as Markdown on stdout."""
    if is_stdout(args.html):
        raise UserError("--html needs a file, as the copies of images go to a folder beside it: name one")
    for path in filter(None, (args.html, args.markdown, args.latex, args.csv)):
        if path.is_dir():
            raise UserError(f"{printable_path(path)}: expected a file to write, found a folder")
    folders = [*dict.fromkeys(args.runs)]
    if any(map(is_shard_folder, folders)):
        if args.html:
            raise UserError("--html shows each image, and shards are for more of them: leave it out")
        report = shards_report(folders, names_of(folders, args.name or ()))
        if not (forms := {form: path for form in FORMS if (path := getattr(args, form))}):
            report.show()
        for form, path in forms.items():
            write_output(path, "\n".join(FORMS[form](table) for table in report.tables))
        return OK
    runs = [read_run(folder, name) for folder, name in zip(folders, names_of(folders, args.name or ()), strict=True)]
    asked, rated = ([run for run in runs if run.asks_questions is kind] for kind in (True, False))
    if asked and rated:
        raise UserError(
            f"{asked[0].folder} asked questions and {rated[0].folder} rated images: report on them one after the other"
        )
    tables = [replace(report_of(run).tables[0], title=f"{run.name}: {run.about}") for run in runs]
    numbers = [numbers_table({run.name: run.figures for run in rated})] if rated else []
    texts = [
        (args.markdown, _markdown(tables)),
        (args.latex, "\n".join(map(latex, tables))),
        (args.csv, "\n".join(map(comma_separated, tables if asked else numbers))),
    ]
    if args.html:
        write_page(runs, args.html, args.mos_range)
    wanted = [(path, text) for path, text in texts if path]
    for path, text in wanted:
        write_output(path, text)
    if written := [path for path in (args.html, *(path for path, _ in wanted)) if path and not is_stdout(path)]:
        print(f"Written: {', '.join(map(printable_path, written))}", file=sys.stderr)
    if not (args.html or wanted):
        print(_markdown(tables), end="")
    return OK


def _markdown(tables: Sequence[ReportTable]) -> str:
    return "\n".join(f"{table.title}\n\n{markdown(table)}" for table in tables)
