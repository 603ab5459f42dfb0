"""``agenticiqa evaluate``: judge every image of a labelled set, keep each result, and measure the agreement."""

import hashlib
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.assess import DEFAULT_QUERY, AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached, within
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import Failure, judge_many
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.assess import add_workers_argument, workers_from
from agenticiqa.programs.cli.options import (
    OK,
    SOME_FAILED,
    add_backend_arguments,
    add_dry_run_argument,
    config_from,
    limits_from,
    one_line,
)
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.result import to_json
from agenticiqa.programs.stages.question import detect_query_type
from agenticiqa.signatures.types import QueryType

Row = dict[str, Any]

LABEL_FIELDS = ("name", "mos", "mos_std", "distortion", "level", "split", "content")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``evaluate``."""
    parser.add_argument("labels", metavar="LABELS.csv", type=Path, help="columns image and mos (higher is better), ...")
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N of these rows, to try things out")
    parser.add_argument("--query", metavar="Q", default=DEFAULT_QUERY, help='the question (default: "%(default)s")')
    add_backend_arguments(parser)
    parser.add_argument("--prompts", metavar="FILE", type=Path, help="tuned prompts, as written by optimize --out")
    parser.add_argument(
        "--out", metavar="RUN", type=Path, help="the folder of the run (default: runs/<data>-<backend>); it is resumed"
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    parser.add_argument(
        "--resamples", metavar="N", type=int, default=1000, help="of the bootstrap intervals (%(default)s; 0: none)"
    )


def run(args: Namespace) -> int:
    """Judge what is left to judge, then report on all of it."""
    from agenticiqa.eval import report

    if (args.limit is not None and args.limit < 1) or args.resamples < 0:
        raise UserError("--limit is at least 1, --resamples at least 0")
    query = args.query.strip()
    if detect_query_type(query) is not QueryType.SCORING:
        raise UserError(f"evaluate compares scores, and {query!r} does not ask for one; ask to rate the quality")
    labels = read_labels(args.labels, args.split)[: args.limit]
    config = config_from(args)
    workers, limits = workers_from(args, config), limits_from(args, config)
    if args.dry_run:
        render.print_estimate(estimate(config, [Job(label.image, query, label.reference) for label in labels]))
        return OK
    prepare(config, limits)
    program = AgenticIQA.from_config(config)
    if args.prompts:
        program.load(args.prompts)
    out = args.out or default_folder(args.labels, args.split, program.backend)
    pin(out, made_with(program, config, args.labels, split=args.split, query=query))
    with ResultsFile(out / "results.jsonl") as journal:
        rows = judged_before(journal.rows, labels, query)
        todo = [label for label in labels if label not in rows]
        if rows:
            print(f"{len(rows)} of {len(labels)} were judged before", file=sys.stderr)
        try:
            with within(limits):
                for label, row in render.progress(judge_labels(program, todo, query, workers), len(todo)):
                    rows[label] = row
                    journal.append(row)
                    if "error" in row:
                        print(f"agenticiqa: {label.image}: {row['error']}", file=sys.stderr)
        except (KeyboardInterrupt, dspy.LMError):
            print(f"agenticiqa: the same command goes on from what is kept in {out}", file=sys.stderr)
            raise
    measured = report.summarise([rows[label] for label in labels], resamples=args.resamples) | {
        "data": str(args.labels),
        "split": args.split,
        "backend": program.backend,
    }
    report.write(measured, out)
    report.show(measured)
    print(f"Kept in {out}: results.jsonl, report.json, report.md")
    return OK if measured["unscored"] == 0 else SOME_FAILED


def judged_before(kept: Sequence[Row], labels: Sequence[Labelled], query: str) -> dict[Labelled, Row]:
    """The rows of earlier runs that still hold: a result of the same bytes and question. Failed images have none."""
    results = {_identity(row): row for row in kept if "error" not in row}
    return {label: row for label in labels if results and (row := results.get(_key(label, query)))}


def judge_labels(
    program: AgenticIQA, labels: Sequence[Labelled], query: str, workers: int
) -> Iterator[tuple[Labelled, Row]]:
    """Judge every labelled image; yields its row as it comes: a result's JSON and the label's fields.

    An image that failed has ``error`` instead of a result. Raises, after the last row, what ended the run early
    (``programs.outages``): a UserError about anything but an image, ``dspy.LMError`` when the model refuses us or stays
    out of reach, LimitReached.
    """
    jobs = {Job(label.image, query, label.reference): label for label in labels}
    outages = StopRule(workers)
    for job, outcome in judge_many(program, jobs, workers, judged, outages.should_stop):
        if not isinstance(outcome, LimitReached):
            yield jobs[job], _row(jobs[job], query, outcome)
    if outages.ended_by:
        raise outages.ended_by


def default_folder(labels: Path, split: str | None, backend: str) -> Path:
    """``runs/<folder of the labels>[-<split>]-<backend>``, in characters that every file system takes."""
    parts = (labels.resolve().parent.name, *([split] if split else []), backend)
    return Path("runs") / "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts)


def judged(result: dspy.Prediction) -> Row:
    """A result's JSON, and by which bytes its reference is known."""
    return {**to_json(result), "reference_sha256": result.reference.sha256 if result.reference else None}


def _row(label: Labelled, query: str, outcome: Row | Failure) -> Row:
    fields = {name: value for name, value in asdict(label).items() if name in LABEL_FIELDS}
    if not isinstance(outcome, Exception):
        return {**outcome, **fields}
    return {
        "image": str(label.image),
        "reference": str(label.reference) if label.reference else None,
        "query": query,
        "error": f"{type(outcome).__name__}: {one_line(outcome)}",
        **fields,
    }


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in ("name", "image_sha256", "reference_sha256", "query"))


def _key(label: Labelled, query: str) -> tuple[Any, ...]:
    return label.name, _digest(label.image), _digest(label.reference) if label.reference else None, query


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # the image is then judged, and fails with a reason
        return None
