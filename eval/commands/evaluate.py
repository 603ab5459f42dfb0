"""``agenticiqa evaluate``: assess labeled sets, and measure the agreement with their MOS."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.configs import Config
from agenticiqa.configs.options import options_of
from agenticiqa.eval.benchmark import refuse_without_references, scoring_question
from agenticiqa.eval.commands import evaluate_mcq
from agenticiqa.eval.commands.arguments import EvaluateOptions, ProgramOptions
from agenticiqa.eval.commands.baselines import baseline_scores, baseline_tools, not_measured, price_text, with_baselines
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.commands.shared import configured_program, continuing, saved, watched
from agenticiqa.eval.datasets import LabeledImage, contents_doubt
from agenticiqa.eval.labels.near_duplicates import near_duplicates, near_duplicates_doubt
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.report.columns import MODEL_ALONE, OURS, WITHOUT_PROFILE
from agenticiqa.eval.report.rating_tables import breakdown, over_tasks
from agenticiqa.eval.report.splits import Splits, splits_named
from agenticiqa.eval.runs import (
    about_run,
    default_folder,
    files_of,
    made_by,
    made_with,
    pin,
    prompts_named,
    refuse_other_run,
    shown_path,
)
from agenticiqa.eval.scorers.named import scorer_of
from agenticiqa.eval.scorers.rows import assess_set
from agenticiqa.eval.scorers.scorer import NO_QUERY, Scorer
from agenticiqa.eval.tasks.labeled_set import LabeledSet
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.batching import check_batches, print_expected, within_batches
from agenticiqa.programs.cli.options import config_from, given, limits_from, workers_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.sinks import print_incomplete, print_unscored
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, worst
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.saving import tuned_on
from agenticiqa.programs.tools import Tool, toolbox


def run(args: EvaluateOptions) -> int:
    """Assess the unfinished images of each task, then report on all of them."""
    if questions := evaluate_mcq.task_of(args):
        return evaluate_mcq.run(args, questions)
    query = scoring_question(args.query)
    splits = splits_named(args.splits) if args.splits else None
    if not args.scorer and (args.scorer_lower_is_better or args.shorter_side is not None):
        raise UserError("--scorer-lower-is-better and --shorter-side need --scorer: add it, or remove them")
    config = config_from(args)
    limits = limits_from(args, config)
    sets = [labels_named(args, task) for task in args.tasks]
    names = [labeled.name for labeled in sets]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UserError(
            f"several tasks have the name {min(repeated)}, taken from their folders: evaluate them one at a time"
        )
    for task, labeled in zip(args.tasks, sets, strict=True):
        if args.by and len({getattr(label, args.by) for label in labeled.labels[: args.limit]} - {None}) < 2:
            raise UserError(f"--by {args.by}: {task} needs a column {args.by} with at least two different values")
        try:
            labeled.any_scale()
        except UserError as error:
            print_error(f"{task}: {error}; without --mos-range, RMSE and other results on 1..5 are omitted")
    jobs = [Job(label.image, query, label.reference) for labeled in sets for label in labeled.labels[: args.limit]]
    if args.batch and args.scorer:
        raise UserError("--batch cannot be combined with --scorer: remove one of them")
    config = check_batches(args, config, limits, jobs)
    if args.dry_run and args.scorer:
        print(f"{len(jobs)} images, no calls to a model")
    elif args.dry_run:
        print_expected(args, config, jobs)
    if args.baselines:
        labels = [label for labeled in sets for label in labeled.labels[: args.limit]]
        print(price_text(_baselines(args, config, labels), labels, available_cores()), file=sys.stderr)
    if args.dry_run:
        return OK
    program = _scorer(args, args.scorer) if args.scorer else configured_program(config)
    runs = [_prepared(args, config, program, query, data) for data in sets]
    written = [file for out, _ in runs for file in files_of(out)]
    if args.out and len(runs) > 1:
        written.append(args.out / "combined.json")
    check_outputs(args, jobs, config, written=written)
    for out, description in runs:
        refuse_other_run(out, description)
    outcomes = [
        _evaluated(args, config, limits, program, query, splits, task, data, out, description)
        for task, data, (out, description) in zip(args.tasks, sets, runs, strict=True)
    ]
    if len(outcomes) > 1:
        together = over_tasks([measured for measured, _ in outcomes])
        together.show()
        if args.out:
            write_atomically(args.out / "combined.json", json.dumps(together.figures, indent=2) + "\n")
    return worst(*(status for _, status in outcomes))


def _baselines(args: EvaluateOptions, config: Config, labels: Sequence[LabeledImage]) -> list[Tool]:
    return baseline_tools(labels, toolbox(config.tool_curves), args.scorer)


def _scorer(args: EvaluateOptions, name: str) -> Scorer:
    if unsuitable := given(args, options_of(ProgramOptions), but=["--no-cache", "--max-calls", "--max-usd"]):
        raise UserError(f"--scorer replaces the program, so {unsuitable[0]} has no effect: remove it")
    return scorer_of(name, args.scorer_lower_is_better or None, args.shorter_side)


def _prepared(
    args: EvaluateOptions, config: Config, program: AgenticIQA | Scorer, query: str, data: LabeledSet
) -> tuple[Path, Mapping[str, Any]]:
    """Return the folder of a task's run and its description. Raises UserError for a scorer without its references."""
    refuse_without_references(program, data.labels[: args.limit])
    folder = args.out / data.name if args.out and len(args.tasks) > 1 else args.out
    options = _options(args, data)
    if isinstance(program, Scorer):
        description = made_by(program, data.digest, options)
    else:
        description = made_with(program, config, data.digest, {**options, "query": query})
    return folder or default_folder(data.name, args.split, program.backend), description


def _options(args: EvaluateOptions, data: LabeledSet) -> dict[str, Any]:
    return {"split": args.split} | ({"data": data.pinned} if data.pinned else {})


def _evaluated(
    args: EvaluateOptions,
    config: Config,
    limits: Limits,
    program: AgenticIQA | Scorer,
    query: str,
    splits: tuple[Splits, str] | None,
    task: Path,
    data: LabeledSet,
    out: Path,
    description: Mapping[str, Any],
) -> tuple[dict[str, Any], int]:
    """Print, write and return the figures of one task, with the exit status."""
    backend, labels = program.backend, data.labels[: args.limit]
    if isinstance(program, Scorer):
        query = NO_QUERY
        workers = args.workers or (available_cores() if program.computes else 1)
    else:
        workers = workers_from(args, config)
    with ResultsFile(out / "results.jsonl") as results:
        pin(out, description)  # the lock is held, so that no other run can start in this folder
        with continuing(out), within(limits), within_batches(args, results.path, limits):
            rows = assess_set(program, labels, results, query=query, workers=workers, watch=watched)
    part = f"first {len(labels):,} of {len(data.labels):,}" if len(labels) < len(data.labels) else None
    about = {
        "data": shown_path(task),
        "task": data.name,
        "split": args.split,
        "backend": backend,
        "part": " of the ".join(filter(None, (part, data.part))) or None,
        "labels_note": data.note,
        "limit": len(labels) if part else None,
        **about_run(args.argv, out / "results.jsonl"),
    }
    extra = not_measured(_baselines(args, config, labels), rows) if args.baselines else []
    scores = baseline_scores(data, labels, extra, out, _options(args, data), about)
    counts: Counter[str] = Counter()
    each_row = _counted(with_baselines(rows, scores), counts)
    fusion = program.fusion if isinstance(program, AgenticIQA) else None
    measured = summarize(each_row, toolbox(config.tool_curves), fusion=fusion, scale=data.scale, splits=splits)
    _mark_tuned(measured, config, labels)
    measured |= about | {"baselines": [tool.name for tool in extra], "prompts": prompts_named(config, description)}
    report = rating_report(measured)
    by = [breakdown(measured, args.by)] if args.by and args.by in measured["breakdowns"] else []
    saved(report, out, measured["limit"], [*report.tables[: 3 if splits else 2], *by])
    pairs = near_duplicates(labels, lambda paths, total: render.progress(paths, total, "comparing scenes"))
    for doubt in filter(None, (contents_doubt(labels), near_duplicates_doubt(pairs))):
        print_error(doubt)
    print_unscored(counts["unscored"], len(rows), "the same command")
    print_incomplete(measured["incomplete"])
    if counts["failed"]:
        return measured, SOME_FAILED
    return measured, UNSCORED if measured["unscored"] else OK


def _mark_tuned(measured: dict[str, Any], config: Config, labels: Sequence[LabeledImage]) -> None:
    """Count the images that the prompts were tuned on, for each scorer that includes the model."""
    images = tuned_on(config.prompts) if config.prompts else frozenset()
    if seen := sum(sha256_of(label.image) in images for label in labels) if images else 0:
        for system in measured["systems"]:
            if system["name"] in (OURS, MODEL_ALONE, WITHOUT_PROFILE):
                system["fitted_on"]["prompts"] = min(seen, system["n"])


def _counted(rows: Iterable[Row], counts: Counter[str]) -> Iterator[Row]:
    """Yield the rows unchanged, and count those without a score and those that failed."""
    for row in rows:
        counts["unscored"] += is_unscored(row)
        counts["failed"] += "error" in row
        yield row
