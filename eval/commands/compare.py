"""``agenticiqa compare``: compare runs of ``evaluate`` on their common items, or compare images."""

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from agenticiqa.eval.commands.arguments import RUNS_SHOWN
from agenticiqa.eval.report.model import FORMS, Report, comma_separated
from agenticiqa.eval.report.run_differences import compare_report, compare_sets
from agenticiqa.eval.report.run_scores import is_run, names_of, read_scores, runs_below
from agenticiqa.programs.cli import compare_images
from agenticiqa.programs.cli.arguments import COMPARE_IMAGES
from agenticiqa.programs.cli.options import given
from agenticiqa.programs.cli.output_paths import check_outputs, write_all
from agenticiqa.programs.cli.printable import csv_for, is_stdout, print_note
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import is_name_of_image


def run(args: Namespace) -> int:
    """Print the tables, or write them in the requested formats; without any folder, compare images."""
    images = not any(path.is_dir() for path in args.runs)
    for path in args.runs:
        _refuse_folder_of_images(path)
    if unsuitable := given(args, RUNS_SHOWN if images else COMPARE_IMAGES):
        wanted, kind = ("runs", "images") if images else ("images", "runs")
        raise UserError(f"{unsuitable[0]} is for {wanted}, but these are {kind}: remove it")
    if images:
        return compare_images.compare([*map(str, args.runs)], args)
    check_outputs(args)
    report = _report(args.runs, names_of(args.runs, args.name or ()))
    texts = {form: "\n".join(map(FORMS[form], report.tables)) for form in ("markdown", "latex")}
    done = write_all(
        [
            *((f"table ({form})", vars(args)[form], partial(texts.__getitem__, form)) for form in texts),
            *csv_outputs(args.csv, {table.title: comma_separated(table) for table in report.tables}),
        ]
    )
    if not done:
        report.show()
    return OK if all(done) else SOME_FAILED


def csv_outputs(file: Path | None, tables: Mapping[str, str]) -> Iterator[tuple[str, Path, Callable[[], str]]]:
    """Yield each table as an output for ``write_all``: the first to ``file``, others beside it, named by title.

    Stdout gets only the first one; a note names the tables that are omitted.
    """
    if file is None:
        return
    (first, text), *others = tables.items()
    yield "table (csv)", file, partial(csv_for, file, text)
    if is_stdout(file):
        if others:
            names = ", ".join(title for title, _ in others)
            print_note(f"only the table {first!r} was printed; use --csv FILE to get these tables, too: {names}")
        return
    for title, text in others:
        beside = file.with_stem(f"{file.stem}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}")
        yield f"table {title!r} (csv)", beside, partial(csv_for, beside, text)


def _refuse_folder_of_images(path: Path) -> None:
    if not path.is_dir() or is_run(path) or runs_below(path):
        return
    if names := sorted(file.name for file in path.iterdir() if is_name_of_image(file.name)):
        names_shown = " ".join(shlex.quote(str(path / name)) for name in names[:2])
        raise UserError(
            f"{path}: this folder has images, not a run of `agenticiqa evaluate`. To compare images, name each one: "
            f"agenticiqa compare {names_shown}. To rate all of them: agenticiqa assess {shlex.quote(str(path))}"
        )


def _report(folders: Sequence[Path], names: Sequence[str]) -> Report:
    """Return the report of runs on one set, or of folders with runs on several sets each."""
    below = [runs_below(folder) for folder in folders]
    if all(below):
        titles = dict.fromkeys(title for runs in below for title in runs)
        runs_by_name = [*zip(names, below, strict=True)]
        return compare_sets(
            {
                title: [read_scores(runs[title], name) for name, runs in runs_by_name if title in runs]
                for title in titles
            }
        )
    if len(folders) < 2:
        raise UserError("name at least two runs (folders that `agenticiqa evaluate` wrote) or two images")
    return compare_report([read_scores(folder, name) for folder, name in zip(folders, names, strict=True)])
