"""``agenticiqa compare``: runs of ``evaluate`` with one another, on what both have; or images with one another."""

import sys
from argparse import Namespace
from pathlib import Path

from agenticiqa.eval.report.compare import compare_report
from agenticiqa.eval.report.model import FORMS
from agenticiqa.eval.report.run_scores import read_scores
from agenticiqa.programs.cli import compare_images
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically

STDOUT = Path("-")
OF_IMAGES = (
    *("reference", "resize_reference", "align", "json", "html", "save_maps", "workers"),
    *("backend", "api_base", "config", "profile", "max_side", "no_cache", "max_calls", "max_usd"),
)


def run(args: Namespace) -> int:
    """Print the tables, or write them in the forms that were asked for; without any folder, compare images."""
    images = not any(path.is_dir() for path in args.runs)
    if foreign := [name for name in (FORMS if images else OF_IMAGES) if getattr(args, name)]:
        told = "a table of runs, and these are no folders of runs" if images else "images, and these are runs"
        raise UserError(f"--{foreign[0].replace('_', '-')} is about {told}: leave it out")
    if images:
        return compare_images.compare([*map(str, args.runs)], args)
    if len(args.runs) < 2:
        raise UserError("name at least two runs: folders that `agenticiqa evaluate` wrote")
    runs = [read_scores(folder) for folder in args.runs]
    if len({each.name for each in runs}) < len(runs):
        for each, folder in zip(runs, args.runs, strict=True):
            each.name = str(folder)
    report = compare_report(runs)
    asked = {form: path for form in FORMS if (path := getattr(args, form))}
    for form, path in asked.items():
        text = "\n".join(FORMS[form](table) for table in report.tables)
        if path == STDOUT:
            sys.stdout.write(text)
        else:
            write_atomically(path, text)
    if not asked:
        report.show()
    return OK
