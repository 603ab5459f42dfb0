"""``agenticiqa evaluate``: judge labeled sets, and measure the agreement with their opinion scores."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import Config
from agenticiqa.eval import report
from agenticiqa.eval.benchmark import backend_of, default_folder, refuse_without_references, scoring_question
from agenticiqa.eval.commands import combined
from agenticiqa.eval.commands.console import print_table
from agenticiqa.eval.datasets import LabeledImage, contents_doubt
from agenticiqa.eval.runs import made_by, made_with, pin
from agenticiqa.eval.scorers.named import FORMS, scorer_of
from agenticiqa.eval.scorers.rows import NewRows, judge_set
from agenticiqa.eval.scorers.scorer import NO_QUERY, Scorer
from agenticiqa.eval.tasks.reading import labeled_images
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.limits import Limits, within
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
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.stages.profile_use import warn_of_other_prompts
from agenticiqa.programs.stages.question import DEFAULT_QUERY
from agenticiqa.programs.tools import toolbox

OF_THE_PROGRAM = ("backend", "config", "profile", "prompts", "max_side")  # options that mean nothing to a scorer


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa evaluate``."""
    complete_files(
        parser.add_argument(
            "tasks",
            metavar="TASK",
            type=Path,
            nargs="+",
            help="a labels file with the columns image and mos (higher is better), ..., or the NAME of a data set, see "
            "`agenticiqa datasets`; of several also the mean is given",
        )
    )
    complete_folders(
        parser.add_argument("--root", metavar="DIR", type=Path, help="of a data set: the folder that its archive is in")
    )
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N of these rows, to try it out")
    parser.add_argument("--query", metavar="Q", default=DEFAULT_QUERY, help='the question (default: "%(default)s")')
    parser.add_argument("--scorer", metavar="S", help=f"measure this in place of the program: {FORMS}")
    parser.add_argument(
        "--scorer-lower-is-better",
        action="store_true",
        default=None,
        help="of a --scorer module:function; metrics declare their own direction",
    )
    add_backend_arguments(parser)
    parser.add_argument("--prompts", metavar="FILE", type=Path, help="tuned prompts, as written by optimize --out")
    parser.add_argument(
        "--out",
        metavar="RUN",
        type=Path,
        help="the folder of the run (default: runs/<data>-<backend>), which is resumed; of several tasks the folder "
        "above theirs",
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)


def run(args: Namespace) -> int:
    """Judge what is not finished yet of each task, then report on all of it."""
    if args.limit is not None and args.limit < 1:
        raise UserError("--limit is at least 1")
    query = scoring_question(args.query)
    if args.scorer_lower_is_better and not args.scorer:
        raise UserError("--scorer-lower-is-better is of a --scorer")
    config = config_from(args)
    limits = limits_from(args, config)
    sets = [labeled_images(task, args.root, args.split) for task in args.tasks]
    names = [name for name, *_ in sets]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(
            f"several tasks are called {min(twice)}, after the folder of their labels: evaluate them in turn"
        )
    if args.dry_run:
        jobs = [Job(each.image, query, each.reference) for *_, labels in sets for each in labels[: args.limit]]
        if args.scorer:
            print(f"{len(jobs)} images: no model is asked")
        else:
            tables.print_estimate(estimate(config, jobs))
        return OK
    program = _scorer(args) if args.scorer else _program(args, config, limits)
    outcomes = [
        _evaluated(args, config, limits, program, query, task, name, sha256, labels[: args.limit])
        for task, (name, sha256, labels) in zip(args.tasks, sets, strict=True)
    ]
    if len(outcomes) > 1:
        print_table(combined.table([measured for measured, _ in outcomes]))
        print(f"- {combined.SENTENCE}")
        if args.out:
            together = json.dumps(combined.summary([measured for measured, _ in outcomes]), indent=2)
            write_atomically(args.out / "combined.json", together + "\n")
    return max((status for _, status in outcomes), key=(OK, UNSCORED, SOME_FAILED).index)


def _scorer(args: Namespace) -> Scorer:
    given = [name for name in OF_THE_PROGRAM if getattr(args, name) is not None]
    if given or args.query != DEFAULT_QUERY:
        option = given[0].replace("_", "-") if given else "query"
        raise UserError(f"--scorer is measured in place of the program: leave out --{option}")
    return scorer_of(args.scorer, args.scorer_lower_is_better)


def _program(args: Namespace, config: Config, limits: Limits) -> AgenticIQA:
    prepare(config, limits)
    program = AgenticIQA.from_config(config)
    if args.prompts:
        program.load(args.prompts)
    return program


def _evaluated(
    args: Namespace,
    config: Config,
    limits: Limits,
    program: AgenticIQA | Scorer,
    query: str,
    task: Path,
    name: str,
    sha256: str,
    labels: list[LabeledImage],
) -> tuple[dict[str, Any], int]:
    """The figures of one task, which are also printed and kept, and the exit status that they mean."""
    backend = backend_of(program)
    out = (args.out / name if len(args.tasks) > 1 else args.out) or default_folder(name, args.split, backend)
    refuse_without_references(program, labels)
    if isinstance(program, Scorer):
        query = NO_QUERY
        description = made_by(program, sha256, {"split": args.split})
        workers = args.workers or (available_cores() if program.computes else 1)
    else:
        description = made_with(program, config, sha256, {"split": args.split, "query": query})
        warn_of_other_prompts(config, description["prompts"])
        workers = workers_from(args, config)
    with ResultsFile(out / "results.jsonl") as results:
        pin(out, description)  # with the lock, so that no other run begins in the folder meanwhile
        try:
            with within(limits):
                rows = judge_set(program, labels, results, query=query, workers=workers, watch=_shown)
        except (KeyboardInterrupt, dspy.LMError):
            print(f"agenticiqa: the same command continues from what is kept in {out}", file=sys.stderr)
            raise
    measured = report.summarize(rows, toolbox(config.calibration)) | {
        "data": str(task),
        "task": name,
        "split": args.split,
        "backend": backend,
    }
    report.write(measured, out)
    print_table(report.terminal(report.headline(measured)))
    print_table(report.terminal(report.further(measured)))
    for sentence in report.sentences(measured):
        print(f"- {sentence}")
    print(f"Kept in {out}: results.jsonl, report.json, report.md")
    if doubt := contents_doubt(labels):
        complain(doubt)
    if unscored := sum(map(is_unscored, rows)):
        complain(unscored_text(unscored, len(rows), "the same command"))
    if any("error" in row for row in rows):
        return measured, SOME_FAILED
    return measured, UNSCORED if measured["unscored"] else OK


def _shown(rows: NewRows, finished: int, total: int) -> NewRows:
    if finished:
        print(f"{finished} of {total} were judged before", file=sys.stderr)
    for label, row in render.progress(rows, total - finished):
        if "error" in row:
            print(f"agenticiqa: {row['error']}", file=sys.stderr)
        yield label, row
