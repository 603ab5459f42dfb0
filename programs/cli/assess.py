"""``agenticiqa assess``: judge images, show or append each result as it comes."""

import contextlib
import hashlib
import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agenticiqa.programs.assess import DEFAULT_QUERY, AgenticIQA, backend_name
from agenticiqa.programs.backends.limits import LimitReached, within
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import Failure, judge_many
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.cli import render, tables
from agenticiqa.programs.cli.options import (
    add_backend_arguments,
    add_dry_run_argument,
    add_workers_argument,
    config_from,
    limits_from,
    one_line,
    workers_from,
)
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import find_images
from agenticiqa.programs.pictures import draw
from agenticiqa.programs.result import Assessment

EXAMPLES = """\
examples:
  agenticiqa assess photo.jpg                                  rate its quality, 1 (bad) to 5 (excellent)
  agenticiqa assess photo.jpg --reference original.png         against its pristine original
  agenticiqa assess photo.jpg --query "Is the sky noisy?"      ask anything about its quality
  agenticiqa assess photo.jpg --query "Main flaw? A. Blur B. Noise"
  agenticiqa assess album/ --jsonl scores.jsonl --resume       a folder; go on where an earlier run stopped
  agenticiqa assess photo.jpg --save-maps maps/                draw where it is bad: maps/photo.png
  agenticiqa assess photo.jpg --backend openai.gpt-4o          let a vision-language model look, too
  agenticiqa assess album/ --config mine.yaml --dry-run        tell what that would cost, send nothing

exit status: 0 all judged, 1 some failed (named on stderr), 2 usage
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa assess``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files or folders of them")
    parser.add_argument(
        "--reference", metavar="R", help="the pristine original, or a folder of originals of the same file name (stem)"
    )
    parser.add_argument(
        "--resize-reference", action="store_true", help="scale a reference of another size to the image's"
    )
    parser.add_argument(
        "--query", metavar="Q", default=DEFAULT_QUERY, help=f'the question (default: "{DEFAULT_QUERY}")'
    )
    add_backend_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json", action="store_true", help="print one JSON object, or a list of them for several images"
    )
    output.add_argument("--jsonl", metavar="FILE", help="append one JSON line for each image as it is finished")
    parser.add_argument("--resume", action="store_true", help="with --jsonl: leave out what FILE already holds")
    parser.add_argument(
        "--save-maps",
        metavar="DIR",
        type=Path,
        help="draw each image that is judged, where it is bad, and its scores: PNGs in DIR, which replace earlier ones",
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)


def run(args: Namespace) -> int:
    """Judge the images and print or append each result; the exit status tells whether all were judged."""
    if args.resume and not args.jsonl:
        raise UserError("--resume goes on with a file: name it with --jsonl FILE")
    config = config_from(args)
    workers, limits = workers_from(args, config), limits_from(args, config)
    jobs = _jobs(args)
    if args.dry_run:
        tables.print_estimate(estimate(config, jobs), as_json=args.json)
        return OK
    then = _drawing(args.save_maps, jobs) if args.save_maps else Assessment.to_dict
    with contextlib.ExitStack() as stack:
        stack.enter_context(within(limits))
        journal = stack.enter_context(_journal(args)) if args.jsonl else None
        backend = backend_name(config.in_profile())
        todo = _unfinished(jobs, journal.rows, backend) if journal else jobs
        if len(todo) < len(jobs):
            print(f"{len(jobs) - len(todo)} of {len(jobs)} were judged before", file=sys.stderr)
        if todo:
            prepare(config, limits)
        program = AgenticIQA.from_config(config)
        judged = 0
        rows: dict[Job, dict[str, Any]] = {}  # kept only for the one list that --json prints
        failed: dict[Job, Failure] = {}
        outages = StopRule(workers)
        try:
            for job, outcome in render.progress(
                judge_many(program, todo, workers, then, outages.should_stop), len(todo)
            ):
                if isinstance(outcome, LimitReached):
                    print(f"agenticiqa: {one_line(outcome)}", file=sys.stderr)
                    continue
                if isinstance(outcome, Exception):
                    failed[job] = outcome
                    print(f"agenticiqa: {job.name}: {one_line(outcome)}", file=sys.stderr)
                    continue
                judged += 1
                if journal:
                    journal.append(outcome)
                elif args.json:
                    rows[job] = outcome
                else:
                    render.print_result(outcome)
        finally:
            if rows:
                in_order = [rows[job] for job in todo if job in rows]
                print(json.dumps(in_order[0] if len(jobs) == 1 else in_order, ensure_ascii=False, indent=2))
    if journal:
        print(f"{judged} judged, kept in {args.jsonl}", file=sys.stderr)
    if args.save_maps:
        print(f"Pictures are in {args.save_maps}", file=sys.stderr)
    left = len(todo) - judged - len(failed)
    if left:
        go_on = f"; the same command with --resume goes on with {args.jsonl}" if journal else ""
        print(f"agenticiqa: stopped; {left} images were not judged{go_on}", file=sys.stderr)
    if not failed and not left:
        return OK
    return USAGE if failed and not judged and all(isinstance(e, UserError) for e in failed.values()) else SOME_FAILED


def _jobs(args: Namespace) -> list[Job]:
    images = find_images(args.images)
    if args.reference is None or not Path(args.reference).is_dir():
        references: dict[Path, Path | None] = dict.fromkeys(images, Path(args.reference) if args.reference else None)
    else:
        by_stem = {path.stem: path for path in find_images([args.reference])}
        lacking = [path.name for path in images if path.stem not in by_stem]
        if lacking:
            raise UserError(f"{args.reference} has no reference of the same name for {', '.join(lacking)}")
        references = {path: by_stem[path.stem] for path in images}
    return [Job(path, args.query, references[path], args.resize_reference) for path in images]


def _drawing(folder: Path, jobs: list[Job]) -> Callable[[Assessment], dict[str, Any]]:
    """As ``Assessment.to_dict``, with a picture of each result in the folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--save-maps {folder}: no folder can be made there ({error.strerror})") from error
    return partial(draw.draw_to_dict, draw.picture_paths(folder, [job.image for job in jobs]))


def _journal(args: Namespace) -> ResultsFile:
    path = Path(args.jsonl)
    if path.exists() and path.stat().st_size and not args.resume:
        raise UserError(f"{path} already holds results: add --resume to go on with it, or name another file")
    return ResultsFile(path)


def _unfinished(jobs: list[Job], rows: list[dict[str, Any]], backend: str) -> list[Job]:
    keys = ("image_sha256", "reference", "query", "backend")
    done = {tuple(row.get(key) for key in keys) for row in rows}
    return [job for job in jobs if (_sha256(job.image), _text(job.reference), job.query.strip(), backend) not in done]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
