"""``agenticiqa evaluate``: judge a labeled set, and measure the agreement with its opinion scores."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import dspy

from agenticiqa.eval import report
from agenticiqa.eval.benchmark import NewRows, default_folder, evaluate, scoring_question
from agenticiqa.eval.commands.console import print_table
from agenticiqa.eval.datasets import contents_doubt
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.eval.tasks.reading import labeled_images
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import within
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli import render, tables
from agenticiqa.programs.cli.completing import complete_files, complete_folders
from agenticiqa.programs.cli.options import (
    add_backend_arguments,
    add_dry_run_argument,
    add_workers_argument,
    config_from,
    limits_from,
    workers_from,
)
from agenticiqa.programs.cli.outputs import complain, unscored_text
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.stages.profile_use import warn_of_other_prompts
from agenticiqa.programs.stages.question import DEFAULT_QUERY
from agenticiqa.programs.tools import toolbox


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa evaluate``."""
    complete_files(
        parser.add_argument(
            "labels",
            metavar="LABELS.csv",
            type=Path,
            help="columns image and mos (higher is better), ...; or the NAME of a data set, see `agenticiqa datasets`",
        )
    )
    complete_folders(
        parser.add_argument("--root", metavar="DIR", type=Path, help="of a data set: the folder that its archive is in")
    )
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N of these rows, to try it out")
    parser.add_argument("--query", metavar="Q", default=DEFAULT_QUERY, help='the question (default: "%(default)s")')
    add_backend_arguments(parser)
    parser.add_argument("--prompts", metavar="FILE", type=Path, help="tuned prompts, as written by optimize --out")
    parser.add_argument(
        "--out", metavar="RUN", type=Path, help="the folder of the run (default: runs/<data>-<backend>); it is resumed"
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)


def run(args: Namespace) -> int:
    """Judge what is not finished yet, then report on all of it."""
    if args.limit is not None and args.limit < 1:
        raise UserError("--limit is at least 1")
    query = scoring_question(args.query)
    name, digest, labels = labeled_images(args.labels, args.root, args.split)
    labels = labels[: args.limit]
    config = config_from(args)
    workers, limits = workers_from(args, config), limits_from(args, config)
    if args.dry_run:
        tables.print_estimate(estimate(config, [Job(label.image, query, label.reference) for label in labels]))
        return OK
    prepare(config, limits)
    program = AgenticIQA.from_config(config)
    if args.prompts:
        program.load(args.prompts)
    out = args.out or default_folder(name, args.split, program.backend)
    description = made_with(program, config, digest, {"split": args.split, "query": query})
    warn_of_other_prompts(config, description["prompts"])
    with ResultsFile(out / "results.jsonl") as results:
        pin(out, description)  # with the lock, so that no other run begins in the folder meanwhile
        try:
            with within(limits):
                rows = evaluate(program, labels, results, query=query, workers=workers, watch=_shown)
        except (KeyboardInterrupt, dspy.LMError):
            print(f"agenticiqa: the same command continues from what is kept in {out}", file=sys.stderr)
            raise
    measured = report.summarize(rows, toolbox(config.calibration)) | {
        "data": str(args.labels),
        "split": args.split,
        "backend": program.backend,
    }
    report.write(measured, out)
    print_table(report.table(measured))
    for sentence in report.sentences(measured):
        print(f"- {sentence}")
    print(f"Kept in {out}: results.jsonl, report.json, report.md")
    if doubt := contents_doubt(labels):
        complain(doubt)
    if unscored := sum(map(is_unscored, rows)):
        complain(unscored_text(unscored, len(rows), "the same command"))
    if any("error" in row for row in rows):
        return SOME_FAILED
    return UNSCORED if measured["unscored"] else OK


def _shown(rows: NewRows, finished: int, total: int) -> NewRows:
    if finished:
        print(f"{finished} of {total} were judged before", file=sys.stderr)
    for label, row in render.progress(rows, total - finished):
        if "error" in row:
            print(f"agenticiqa: {row['error']}", file=sys.stderr)
        yield label, row
