"""``agenticiqa evaluate PAIRS --scorer S`` for images without MOS: write the scorer's values."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from agenticiqa.eval.commands.label_options import declared_by
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.reading import DMOS, MOS, read_own
from agenticiqa.eval.labels.sources import holds_labels, open_source
from agenticiqa.eval.names import plain
from agenticiqa.eval.scorers.scorer import Scorer
from agenticiqa.eval.tasks.reading import set_named
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.assess_many import run_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.csv_text import csv_text


def without_mos(data: Path, args: Namespace) -> bool:
    """Return whether ``data`` is a file of images without a MOS column, and no such column is named."""
    if set_named(data) or not data.is_file() or not holds_labels(data) or args.mos_column:
        return False
    return not any(plain(name) in (*MOS, DMOS) for name in _columns(data))


def write_values(scorer: Scorer, args: Namespace) -> int:
    """Measure every image and write CSV: image, reference, value; to ``values.csv`` in ``--out``, else to stdout."""
    if len(args.tasks) > 1:
        raise UserError("only one table without MOS can be measured at a time: run the command for each table")
    labels = _images(args.tasks[0], args)
    workers = args.workers or (available_cores() if scorer.computes else 1)
    jobs = {Job(label.image, "", label.reference): label for label in labels}
    rows, failed = {}, 0
    outcomes = run_many(scorer, jobs, workers, computes=scorer.computes)
    for job, outcome in render.progress(outcomes, len(jobs), "measuring"):
        if isinstance(outcome, Exception):
            print_error(str(outcome))
            failed += 1
        rows[jobs[job]] = "" if isinstance(outcome, Exception) else outcome["raw_score"]
    found = ", ".join(_columns(args.tasks[0]))
    print_error(
        f"{args.tasks[0]}: no MOS column found (columns: {found}), so only the values are written. Name it with "
        "--mos-column to measure the agreement."
    )
    table = [(label.name, label.reference or "", rows[label]) for label in labels if label in rows]
    text = csv_text([("image", "reference", scorer.name), *table])
    if args.out is None:
        sys.stdout.write(text)
        return SOME_FAILED if failed else OK
    write_atomically(args.out / "values.csv", text)
    print(f"Saved in {args.out / 'values.csv'}")
    return SOME_FAILED if failed else OK


def _images(data: Path, args: Namespace) -> Sequence[LabeledImage]:
    """Return the images of the file; their ``mos`` has no meaning."""
    source = open_source(data, args.root)
    return read_own(source, declared_by(args), args.split, with_scores=False)[: args.limit]


def _columns(data: Path) -> list[str]:
    _, cells = next(open_source(data).rows, ("", {}))
    return [name for name in cells if name]
