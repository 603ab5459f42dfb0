"""``agenticiqa compare``: runs of ``evaluate`` with one another, on what both have; or images with one another."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from agenticiqa.eval.commands.console import print_table
from agenticiqa.eval.compare.differences import differences
from agenticiqa.eval.compare.run_scores import RunScores, read_scores
from agenticiqa.eval.compare.tables import difference_table, leaderboard
from agenticiqa.eval.report.table import FORMS, terminal
from agenticiqa.programs.cli import compare_images
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically

STDOUT = Path("-")
OF_IMAGES = (
    *("reference", "resize_reference", "align", "json", "html", "save_maps", "workers"),
    *("backend", "api_base", "config", "profile", "max_side", "no_cache", "max_calls", "max_usd"),
)
SENTENCES = (
    "Brackets: 95 % intervals, a jackknife over contents (accuracy: Wilson, widened for contents); a difference leaves "
    "out the same contents of both runs.",
    "p: Student's t over contents, of answers McNemar's exact test; Holm: corrected for the number of pairs.",
    "Needed: about so many items like these tell a difference of 0.01 in 80 of 100 studies.",
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
    found = differences(runs)
    tables = (leaderboard(runs), difference_table(found))
    asked = {form: path for form in FORMS if (path := getattr(args, form))}
    for form, path in asked.items():
        text = "\n".join(FORMS[form](cells) for cells in tables)
        if path == STDOUT:
            sys.stdout.write(text)
        else:
            write_atomically(path, text)
    if not asked:
        for cells in tables:
            print_table(terminal(cells))
        for sentence in (*SENTENCES, *_about_questions(runs)):
            print(f"- {sentence}")
    return OK


def _about_questions(runs: Sequence[RunScores]) -> Iterator[str]:
    if runs[0].circular and runs[0].kind == "choice" and runs[0].figure != "accuracy":
        yield "Circular: a question is right if it is with its options in all rotations; p is of questions."
    elif some := [run.name for run in runs if run.kind == "choice" and run.circular]:
        yield f"Only {', '.join(some)} asked all rotations, so in every run only the order of the set counts."
