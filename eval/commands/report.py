"""``agenticiqa report``: a page, and tables, of the runs that ``agenticiqa evaluate`` kept."""

import sys
from argparse import Namespace
from collections.abc import Sequence

from agenticiqa.eval.page.page import write_page
from agenticiqa.eval.page.questions import asks_questions, figures_table, read_question_run, write_question_page
from agenticiqa.eval.page.run import read_run
from agenticiqa.eval.report.numbers import numbers_csv
from agenticiqa.eval.report.table import Cells, comma_separated, headline, latex, markdown
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path, write_atomically


def run(args: Namespace) -> int:
    """Read the runs, and write what was asked for; without any option, the table as Markdown on stdout."""
    for path in filter(None, (args.html, args.markdown, args.latex, args.csv)):
        if path.is_dir():
            raise UserError(f"{printable_path(path)}: expected a file to write, found a folder")
    folders = [*dict.fromkeys(args.runs)]
    asked = [folder for folder in folders if asks_questions(folder)]
    if asked and len(asked) < len(folders):
        rated = next(folder for folder in folders if folder not in asked)
        raise UserError(f"{asked[0]} asked questions and {rated} rated images: report on them one after the other")
    if asked:
        question_runs = [read_question_run(folder) for folder in asked]
        tables = [figures_table(each) for each in question_runs]
        numbers = "\n".join(map(comma_separated, tables))
    else:
        runs = [read_run(folder) for folder in folders]
        tables = [headline(each.figures) for each in runs]
        numbers = numbers_csv([each.figures for each in runs])
    written = [args.html] if args.html else []
    if args.html and asked:
        write_question_page(question_runs, args.html)
    elif args.html:
        write_page(runs, args.html, args.mos_range)
    formats = ((args.markdown, _markdown(tables)), (args.latex, "\n".join(map(latex, tables))), (args.csv, numbers))
    for path, text in formats:
        if path:
            write_atomically(path, text)
            written.append(path)
    if written:
        print(f"Written: {', '.join(map(printable_path, written))}", file=sys.stderr)
    else:
        print(_markdown(tables), end="")
    return OK


def _markdown(tables: Sequence[Cells]) -> str:
    return "\n".join(f"{table.title}\n\n{markdown(table)}" for table in tables)
