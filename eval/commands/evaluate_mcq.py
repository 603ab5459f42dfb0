"""``agenticiqa evaluate`` for question benchmarks: multiple choice, and explanations scored by a model."""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agenticiqa.configs import Config
from agenticiqa.eval.commands.shared import configured_program, continuing, shown
from agenticiqa.eval.names import named
from agenticiqa.eval.questions.asking import ask, marked_choice, unmarked
from agenticiqa.eval.questions.catalog import QUESTION_TASKS, refuse_pairs
from agenticiqa.eval.questions.descriptions import judge_all, judge_question
from agenticiqa.eval.questions.task import AskedItem, QuestionTask, asked_of, items_sha256, read_items
from agenticiqa.eval.report.questions import choice_figures, explanation_figures, question_report
from agenticiqa.eval.runs import about_run, default_folder, made_with, pin, prompts_named, report_name
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect, require_address
from agenticiqa.programs.backends.ledger import within
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli.batching import check_batches, print_expected, within_batches
from agenticiqa.programs.cli.options import config_from, limits_from, workers_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

SEVERAL_ROUNDS = 1.0  # the judge's temperature for several rounds


def task_of(args: Namespace) -> QuestionTask | None:
    """Return the benchmark of questions that the arguments name, or ``None`` if they name labeled images.

    Raises UserError for several benchmarks, for a benchmark of image pairs, and for an option that does not apply.
    """
    for name in args.tasks:
        if not name.exists():
            refuse_pairs(str(name))
    known = [task for name in args.tasks if not name.is_file() and (task := named(str(name), QUESTION_TASKS))]
    if not known:
        for option in ("circular", "judge", "judge_api_base"):
            if getattr(args, option):
                raise UserError(f"--{option.replace('_', '-')} is for question benchmarks: remove it, or name one")
        return None
    if len(args.tasks) > 1:
        raise UserError(f"{known[0].name} is a question benchmark: evaluate it separately from the other tasks")
    for option in ("scorer", "baselines", "splits", "partial"):
        if getattr(args, option):
            raise UserError(f"--{option} is for images with MOS, but {known[0].name} has questions: remove it")
    return known[0]


def run(args: Namespace, task: QuestionTask) -> int:
    """Ask the unanswered questions, then report on all of them."""
    _check(args, task)
    found = read_items(task, args.root, args.split)
    items = found.usable[: args.limit]
    questions = list(asked_of(items, circular=args.circular))
    config = config_from(args)
    workers, limits = workers_from(args, config), limits_from(args, config)
    jobs = [asked.job for asked in questions]
    config = check_batches(args, config, limits, jobs)
    if args.dry_run:
        print_expected(args, config, jobs)
        return OK
    check_outputs(args, filter(None, (args.config,)))
    program = configured_program(config)
    out = args.out or default_folder(task.name, args.split, program.backend)
    options: dict[str, Any] = {"task": task.name, "split": args.split}
    figures: dict[str, Any] = {}
    with ResultsFile(out / "results.jsonl") as results:
        description = made_with(program, config, items_sha256(found.usable), options)
        pin(out, description)
        with continuing(out), within(limits):
            with within_batches(args, results.path, limits):
                rows = _asked(task, program, questions, results, workers)
            if task.kind == "explanation":
                figures = _judged(args, config, questions, rows, out, workers)
    if task.kind == "choice":
        figures = choice_figures(rows)
    measured = {
        "kind": task.kind,
        "data": task.name,
        "split": args.split,
        "backend": program.backend,
        "prompts": prompts_named(config, description),
        "skipped": len(found.skipped),
        **figures,
        "limit": args.limit if len(items) < len(found.usable) else None,
        "part": f"first {len(items):,} of {len(found.usable):,}" if len(items) < len(found.usable) else None,
        **about_run(args.argv, out / "results.jsonl"),
    }
    name = report_name(out, measured["limit"])
    report = question_report(measured)
    report.write(out, name)
    report.show(kept=out / f"{name}.md")
    for why in found.skipped[:3]:
        print_error(f"skipped: {why}")
    print(f"Saved in {out}: results.jsonl, {name}.json, {name}.md")
    return SOME_FAILED if any("error" in row for row in rows) else OK


def _check(args: Namespace, task: QuestionTask) -> None:
    """Raise UserError for options that do not fit together."""
    if args.root is None:
        raise UserError(
            f"{task.name}: add --root DIR, the folder that contains {task.folder} (download: {task.source})"
        )
    if args.query != DEFAULT_QUERY:
        raise UserError(f"--query is for images with MOS, but {task.name} has its own questions: remove it")
    if args.circular and task.kind != "choice":
        raise UserError(f"--circular rotates answer options, but the questions of {task.name} have none: remove it")
    if (args.judge is None) == (task.kind == "explanation"):
        needs = (
            "needs a model that grades answers: name it with --judge" if args.judge is None else "does not use --judge"
        )
        raise UserError(f"{task.name} {needs}")
    if args.judge:
        require_address(Config().with_backend(args.judge, args.judge_api_base).replan, "--judge-api-base")


def _asked(
    task: QuestionTask, program: AgenticIQA, questions: Sequence[AskedItem], results: ResultsFile, workers: int
) -> list[Row]:
    asking = partial(ask, questions=questions, results=results, workers=workers, watch=shown)
    return asking(program, to_row=Assessment.to_dict, marked=marked_choice if task.kind == "choice" else unmarked)


def _judged(
    args: Namespace, config: Config, questions: Sequence[AskedItem], rows: Sequence[Row], out: Path, workers: int
) -> dict[str, Any]:
    """Let the judge score the remaining explanations, save the scores in ``judge/``, and return the figures."""
    stage = Config().with_backend(args.judge, args.judge_api_base).replan
    if args.rounds > 1:
        stage = stage.model_copy(update={"temperature": SEVERAL_ROUNDS})
    folder = out / "judge"
    with ResultsFile(folder / "results.jsonl") as kept:
        pin(folder, {"judge": args.judge, "temperature": stage.temperature})
        question = judge_question(connect(stage, cache=args.rounds == 1), config.attempts)
        items = [asked.item for asked in questions]
        verdicts = judge_all(question, items, rows, kept, rounds=args.rounds, workers=workers, watch=shown)
    return {"judge": args.judge, **explanation_figures(rows, verdicts)}
