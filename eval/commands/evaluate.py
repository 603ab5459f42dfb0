"""``agenticiqa evaluate``: assess labeled sets, and measure the agreement with their MOS."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from agenticiqa.eval.report.run_differences import compare_sets
from agenticiqa.eval.report.run_scores import RunScores, read_scores
from agenticiqa.eval.report.several_scorers import over_scorers, scorers_report
from agenticiqa.eval.report.splits import Splits, splits_named
from agenticiqa.eval.runs import (
    about_run,
    default_folder,
    files_of,
    folder_name,
    made_by,
    made_with,
    pin,
    prompts_named,
    refuse_other_run,
    report_name,
    shown_path,
)
from agenticiqa.eval.scorers.given import columns_scored
from agenticiqa.eval.scorers.named import scorer_of
from agenticiqa.eval.scorers.rows import SetRows, assess_set
from agenticiqa.eval.scorers.scorer import NO_QUERY, Scorer
from agenticiqa.eval.tasks.labeled_set import LabeledSet
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import LoggedOptions
from agenticiqa.programs.cli.batching import check_batches, print_expected, within_batches
from agenticiqa.programs.cli.options import config_from, given, limits_from, workers_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error, print_text, printable
from agenticiqa.programs.cli.sinks import print_incomplete, print_unscored
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, worst
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.saving import tuned_on
from agenticiqa.programs.tools import Tool, toolbox


@dataclass(frozen=True)
class _Task:
    """A labeled set by its name on the command line; ``labels`` are its first images, as many as ``--limit`` says."""

    name: Path
    data: LabeledSet
    labels: Sequence[LabeledImage]


@dataclass(frozen=True)
class _TaskRun:
    """The run of one task with the program or a scorer; the runs of a command share everything else."""

    args: EvaluateOptions
    config: Config
    limits: RunLimits
    splits: tuple[Splits, str] | None
    program: AgenticIQA | Scorer
    query: str
    task: _Task

    @property
    def task_out(self) -> Path:
        """The folder of all runs of the task."""
        args, name = self.args, self.task.data.name
        if args.out:
            return args.out / name if len(args.tasks) > 1 else args.out
        return default_folder(name, args.split, "scorers" if self.is_one_of_several else self.program.backend)

    @property
    def out(self) -> Path:
        """The folder of the run."""
        return self.task_out / folder_name(self.program.backend) if self.is_one_of_several else self.task_out

    @property
    def is_one_of_several(self) -> bool:
        """Whether several scorers are compared."""
        return len(self.args.scorer or ()) > 1

    @property
    def data_options(self) -> dict[str, Any]:
        """The options that choose the data, for ``run.json``."""
        pinned = self.task.data.pinned
        return {"split": self.args.split} | ({"data": pinned} if pinned else {})

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """What determines the results, for ``run.json``."""
        if isinstance(self.program, Scorer):
            return made_by(self.program, self.task.data.digest, self.data_options)
        return made_with(self.program, self.config, self.task.data.digest, {**self.data_options, "query": self.query})


def run(args: EvaluateOptions) -> int:
    """Assess the unfinished images of each task, then report on all of them."""
    if questions := evaluate_mcq.task_of(args):
        return evaluate_mcq.run(args, questions)
    query = scoring_question(args.query)
    splits = splits_named(args.splits) if args.splits else None
    _refuse_options_of_scorers(args)
    config = config_from(args)
    limits = limits_from(args, config)
    tasks = _tasks(args)
    jobs = [Job(label.image, query, label.reference) for task in tasks for label in task.labels]
    config = check_batches(args, config, limits, jobs)
    _print_plan(args, config, tasks, jobs)
    if args.dry_run:
        return OK
    programs = _scorers(args) if args.scorer else [configured_program(config)]
    runs = {
        task.name: [
            _TaskRun(args, config, limits, splits, program, query, task) for program in _fitting(programs, task)
        ]
        for task in tasks
    }
    every = [each for of_task in runs.values() for each in of_task]
    together = args.out / "combined.json" if args.out and len(tasks) > 1 and len(programs) == 1 else None
    written = [file for each in every for file in (*files_of(each.out), each.task_out / "report.json")]
    if together:
        written.append(together)
    check_outputs(args, jobs, config, written=dict.fromkeys(written))
    for each in every:
        refuse_other_run(each.out, each.description)
    outcomes = {task: [_evaluated(each) for each in of_task] for task, of_task in runs.items()}
    if len(programs) > 1:
        _compare(runs, {task: [measured for measured, _ in of_task] for task, of_task in outcomes.items()})
    elif len(tasks) > 1:
        _combine([measured for ((measured, _),) in outcomes.values()], together)
    return worst(*(status for of_task in outcomes.values() for _, status in of_task))


def _refuse_options_of_scorers(args: EvaluateOptions) -> None:
    if not args.scorer and (args.scorer_lower_is_better or args.shorter_side is not None):
        raise UserError("--scorer-lower-is-better and --shorter-side need --scorer: add it, or remove them")
    if args.baselines and len(args.scorer or ()) > 1:
        raise UserError("--baselines adds metrics to one report; with several scorers, name them with --scorer")
    if args.batch and args.scorer:
        raise UserError("--batch cannot be combined with --scorer: remove one of them")


def _tasks(args: EvaluateOptions) -> list[_Task]:
    """Read the labels of all tasks; print why results on 1..5 are omitted. Raises UserError for unsuitable labels."""
    tasks = []
    for name in args.tasks:
        data = labels_named(args, name, scores=columns_scored(args.scorer or ()))
        tasks.append(_Task(name, data, data.labels[: args.limit]))
    names = [task.data.name for task in tasks]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UserError(
            f"several tasks have the name {min(repeated)}, taken from their folders: evaluate them one at a time"
        )
    for task in tasks:
        if args.by and len({getattr(label, args.by) for label in task.labels} - {None}) < 2:
            raise UserError(f"--by {args.by}: {task.name} needs a column {args.by} with at least two different values")
        try:
            task.data.any_scale()
        except UserError as error:
            print_error(f"{task.name}: {error}; without --mos-range, RMSE and other results on 1..5 are omitted")
    return tasks


def _print_plan(args: EvaluateOptions, config: Config, tasks: Sequence[_Task], jobs: list[Job]) -> None:
    """Print the cost of a dry run, and the time that baselines take."""
    if args.dry_run and args.scorer:
        print_text(f"{len(jobs)} images, no calls to a model")
    elif args.dry_run:
        print_expected(args, config, jobs)
    if args.baselines:
        labels = [label for task in tasks for label in task.labels]
        print(printable(price_text(_baselines(args, config, labels), labels, available_cores())), file=sys.stderr)


def _baselines(args: EvaluateOptions, config: Config, labels: Sequence[LabeledImage]) -> list[Tool]:
    return baseline_tools(labels, toolbox(config.tool_curves), args.scorer or ())


def _scorers(args: EvaluateOptions) -> list[AgenticIQA | Scorer]:
    logging = [option.flags[0] for option in options_of(LoggedOptions)]
    if unsuitable := given(args, options_of(ProgramOptions), but=["--no-cache", *logging]):
        raise UserError(f"--scorer replaces the program, so {unsuitable[0]} has no effect: remove it")
    scorers = [scorer_of(name, args.scorer_lower_is_better or None, args.shorter_side) for name in args.scorer or ()]
    names = [folder_name(scorer.backend).lower() for scorer in scorers]
    if repeated := [scorer.name for scorer, name in zip(scorers, names, strict=True) if names.count(name) > 1]:
        raise UserError(f"several scorers have the name {repeated[0]}: rename a column or a file, or remove one")
    return [*scorers]


def _fitting(programs: Sequence[AgenticIQA | Scorer], task: _Task) -> Iterator[AgenticIQA | Scorer]:
    """Yield the program or the scorers for the labels of a task. Raises UserError for a scorer that does not fit."""
    for program in programs:
        refuse_without_references(program, task.labels)
        yield program.on(task.data.labels) if isinstance(program, Scorer) else program


def _evaluated(run: _TaskRun) -> tuple[dict[str, Any], int]:
    """Print, write and return the figures of one task, with the exit status."""
    rows = _assessed(run)
    about = _about(run)
    labels = run.task.labels
    extra = not_measured(_baselines(run.args, run.config, labels), rows) if run.args.baselines else []
    scores = baseline_scores(run.task.data, labels, extra, run.out, run.data_options, about)
    measured = _measured(run, with_baselines(rows, scores))
    measured |= about | {"baselines": [tool.name for tool in extra]}
    measured |= {"prompts": prompts_named(run.config, run.description)}
    _report(run, measured)
    _print_doubts(labels)
    outcomes = Counter(map(_outcome, rows))
    print_unscored(outcomes["unscored"], len(rows), "the same command")
    print_incomplete(measured["incomplete"])
    if outcomes["failed"]:
        return measured, SOME_FAILED
    return measured, UNSCORED if measured["unscored"] else OK


def _assessed(run: _TaskRun) -> SetRows:
    """Assess the unfinished images in the run's folder, and return the rows of all."""
    query, workers = run.query, run.args.workers
    if isinstance(run.program, Scorer):
        query, workers = NO_QUERY, workers or (available_cores() if run.program.computes else 1)
    else:
        workers = workers_from(run.args, run.config)
    with ResultsFile(run.out / "results.jsonl") as results:
        pin(run.out, run.description)  # the lock is held, so that no other run can start in this folder
        with continuing(run.out), within(run.limits), within_batches(run.args, results.path, run.limits):
            return assess_set(run.program, run.task.labels, results, query=query, workers=workers, watch=watched)


def _about(run: _TaskRun) -> dict[str, Any]:
    """Describe the run for its report; ``part`` says which part of the data set was assessed."""
    args, data, count = run.args, run.task.data, len(run.task.labels)
    part = f"first {count:,} of {len(data.labels):,}" if count < len(data.labels) else None
    return {
        "data": shown_path(run.task.name),
        "task": data.name,
        "split": args.split,
        "backend": run.program.backend,
        "part": " of the ".join(filter(None, (part, data.part))) or None,
        "labels_note": data.note,
        "limit": count if part else None,
        **about_run(args.argv, run.out / "results.jsonl"),
    }


def _measured(run: _TaskRun, rows: Iterable[Row]) -> dict[str, Any]:
    """Return the figures of the rows; each scorer with the model counts the images that its prompts were tuned on."""
    config, program, scale = run.config, run.program, run.task.data.scale
    fusion = program.fusion if isinstance(program, AgenticIQA) else None
    measured = summarize(rows, toolbox(config.tool_curves), fusion=fusion, scale=scale, splits=run.splits)
    images = tuned_on(config.prompts) if config.prompts else frozenset()
    if seen := sum(sha256_of(label.image) in images for label in run.task.labels) if images else 0:
        for system in measured["systems"]:
            if system["name"] in (OURS, MODEL_ALONE, WITHOUT_PROFILE):
                system["fitted_on"]["prompts"] = min(seen, system["n"])
    return measured


def _report(run: _TaskRun, measured: Mapping[str, Any]) -> None:
    """Write the report, and print its first tables."""
    report, by = rating_report(measured), run.args.by
    tables = [] if run.is_one_of_several else [*report.tables[:2]]
    if run.splits:
        tables.append(report.tables[2])
    if by and by in measured["breakdowns"]:
        tables.append(breakdown(measured, by))
    if run.is_one_of_several:  # the comparison shows all scorers in one table
        report.write(run.out, report_name(run.out, measured["limit"]))
        replace(report, notes={}).show(tables)
    else:
        saved(report, run.out, measured["limit"], tables)


def _print_doubts(labels: Sequence[LabeledImage]) -> None:
    """Print on stderr why the scenes of the labels may be wrong."""
    pairs = near_duplicates(labels, lambda paths, total: render.progress(paths, total, "comparing scenes"))
    for doubt in filter(None, (contents_doubt(labels), near_duplicates_doubt(pairs, labels))):
        print_error(doubt)


def _outcome(row: Row) -> str:
    if "error" in row:
        return "failed"
    return "unscored" if is_unscored(row) else "scored"


def _compare(runs: Mapping[Path, Sequence[_TaskRun]], measured: Mapping[Path, Sequence[Mapping[str, Any]]]) -> None:
    """Write and print the report of all scorers on each task, and their comparison over several tasks."""
    scores: dict[str, list[RunScores]] = {}
    for task, of_task in runs.items():
        listed = scores[of_task[0].task.data.name] = [read_scores(run.out, run.program.backend) for run in of_task]
        figures = over_scorers({run.name: each for run, each in zip(listed, measured[task], strict=True)}, listed)
        saved(scorers_report(figures), of_task[0].task_out, figures["limit"], runs=[run.out.name for run in of_task])
    if len(scores) > 1:
        compare_sets(scores).show()


def _combine(measured: Sequence[Mapping[str, Any]], file: Path | None) -> None:
    """Print the figures of several tasks as one table, and write them to ``file``, if it is given."""
    together = over_tasks(measured)
    together.show()
    if file:
        write_atomically(file, json.dumps(together.figures, indent=2) + "\n")
