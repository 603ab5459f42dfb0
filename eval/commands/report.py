"""``agenticiqa report``: a page, and tables, of the runs that ``agenticiqa evaluate`` kept."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path

from agenticiqa.eval.datasets import MOS_RANGE_HELP
from agenticiqa.eval.page.page import write_page
from agenticiqa.eval.page.run import Run, read_run
from agenticiqa.eval.report.numbers import numbers_csv
from agenticiqa.eval.report.table import headline, latex, markdown
from agenticiqa.programs.cli.completing import complete_files, complete_folders
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path, write_atomically

EXAMPLES = """\
examples:
  agenticiqa report runs/live --html report.html               one page, to be opened from disk
  agenticiqa report runs/live runs/other --html both.html      several runs, compared with the first
  agenticiqa report runs/live --latex table.tex --csv table.csv
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa report``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    complete_folders(
        parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="a folder that evaluate wrote (--out)")
    )
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    for option, about in (
        ("--html", "write a page: tables, charts, the best and worst images; their copies go to a folder beside it"),
        ("--markdown", "write the table of figures as Markdown"),
        ("--latex", "write it as LaTeX, with booktabs"),
        ("--csv", "write it as CSV, unrounded, with the ends of the intervals"),
    ):
        complete_files(parser.add_argument(option, metavar="FILE", type=Path, help=about))


def run(args: Namespace) -> int:
    """Read the runs, and write what was asked for; without any option, the table as Markdown on stdout."""
    formats: list[tuple[Path | None, Callable[[list[Run]], str]]] = [
        (args.markdown, _markdown),
        (args.latex, lambda runs: "\n".join(latex(headline(each.figures)) for each in runs)),
        (args.csv, lambda runs: numbers_csv([each.figures for each in runs])),
    ]
    for path in filter(None, (args.html, args.markdown, args.latex, args.csv)):
        if path.is_dir():
            raise UserError(f"{printable_path(path)}: expected a file to write, found a folder")
    runs = [read_run(folder) for folder in dict.fromkeys(args.runs)]
    written = [args.html] if args.html else []
    if args.html:
        write_page(runs, args.html, args.mos_range)
    for path, text in formats:
        if path:
            write_atomically(path, text(runs))
            written.append(path)
    if written:
        print(f"Written: {', '.join(map(printable_path, written))}", file=sys.stderr)
    else:
        print(_markdown(runs), end="")
    return OK


def _markdown(runs: list[Run]) -> str:
    tables = [headline(each.figures) for each in runs]
    return "\n".join(f"{table.title}\n\n{markdown(table)}" for table in tables)
