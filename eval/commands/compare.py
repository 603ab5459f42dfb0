"""``agenticiqa compare``: compare runs of ``evaluate`` on their common items, or compare images."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from agenticiqa.configs.options import options_of
from agenticiqa.eval.commands.arguments import CompareOptions
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.run_differences import compare_report, compare_sets
from agenticiqa.eval.report.run_scores import is_run, names_of, read_scores, runs_below
from agenticiqa.programs.cli import compare_images
from agenticiqa.programs.cli.arguments import ImageOptions
from agenticiqa.programs.cli.options import given
from agenticiqa.programs.cli.output_paths import check_outputs, write_all
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, files_of, json_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import is_name_of_image


def run(args: CompareOptions) -> int:
    """Print the tables, or write them in the requested formats; without any folder, compare images."""
    images = not any(os.path.isdir(path) for path in args.runs)
    for path in args.runs:
        _refuse_folder_of_images(path)
    for_others = [option for option in options_of(CompareOptions) if option.name == "name"]
    if not images:
        for_others = [*options_of(ImageOptions)]
    if unsuitable := given(args, for_others):
        wanted, kind = ("runs", "images") if images else ("images", "runs")
        raise UserError(f"{unsuitable[0]} is for {wanted}, but these are {kind}: remove it")
    if images:
        return compare_images.compare([*map(str, args.runs)], args)
    check_outputs(args)
    report = _report(args.runs, names_of(args.runs, args.name or ()))
    view = View(report.tables, document=report.figures)
    done = write_all([*files_of(args, view), json_of(args, view)])
    if not done:
        report.show()
    return OK if all(done) else SOME_FAILED


def _refuse_folder_of_images(path: Path) -> None:
    if not os.path.isdir(path) or is_run(path) or runs_below(path):
        return
    if names := sorted(file.name for file in path.iterdir() if is_name_of_image(file.name)):
        names_shown = " ".join(shlex.quote(str(path / name)) for name in names[:2])
        raise UserError(
            f"{path}: this folder has images, not a run of `agenticiqa evaluate`. To compare images, name each one: "
            f"agenticiqa compare {names_shown}. To rate all of them: agenticiqa assess {shlex.quote(str(path))}"
        )


def _report(folders: Sequence[Path], names: Sequence[str]) -> Report:
    """Return the report of runs on one set, or of folders with runs on several sets each.

    A single folder with runs has those of several scorers on one set.
    """
    below = [runs_below(folder) for folder in folders]
    if len(folders) == 1 and below[0]:
        return compare_report([read_scores(folder, name) for name, folder in below[0].items()])
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
