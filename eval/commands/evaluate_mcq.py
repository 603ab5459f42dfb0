"""``agenticiqa evaluate`` for question benchmarks: multiple-choice questions."""

import os
from typing import Any

from agenticiqa.eval.commands.arguments import EvaluateOptions
from agenticiqa.eval.commands.shared import configured_program, continuing, saved, watched
from agenticiqa.eval.names import named
from agenticiqa.eval.questions.asking import ask
from agenticiqa.eval.questions.catalog import QUESTION_TASKS, refuse_pairs
from agenticiqa.eval.questions.task import QuestionTask, asked_of, items_sha256, read_items
from agenticiqa.eval.report.questions import choice_figures, question_report
from agenticiqa.eval.runs import about_run, default_folder, files_of, made_with, pin, prompts_named
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli.batching import check_batches, print_expected, within_batches
from agenticiqa.programs.cli.options import settings_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


def task_of(args: EvaluateOptions) -> QuestionTask | None:
    """Return the benchmark of questions that the arguments name, or ``None`` if they name labeled images.

    Raises UserError for several benchmarks, for a benchmark of image pairs, and for an option that does not apply.
    """
    for name in args.tasks:
        if not os.path.exists(name):
            refuse_pairs(str(name))
    known = [task for name in args.tasks if not os.path.isfile(name) and (task := named(str(name), QUESTION_TASKS))]
    if not known:
        if args.circular:
            raise UserError("--circular is for question benchmarks: remove it, or name one")
        return None
    if len(args.tasks) > 1:
        raise UserError(f"{known[0].name} is a question benchmark: evaluate it separately from the other tasks")
    for option in ("scorer", "baselines", "splits", "partial"):
        if getattr(args, option):
            raise UserError(f"--{option} is for images with MOS, but {known[0].name} has questions: remove it")
    return known[0]


def run(args: EvaluateOptions, task: QuestionTask) -> int:
    """Ask the unanswered questions, then report on all of them."""
    if args.query != DEFAULT_QUERY:
        raise UserError(f"--query is for images with MOS, but {task.name} has its own questions: remove it")
    benchmark = read_items(task, args.root, args.split)
    items = benchmark.usable[: args.limit]
    questions = list(asked_of(items, circular=args.circular))
    config, workers, limits = settings_from(args)
    jobs = [question.job for question in questions]
    config = check_batches(args, config, limits, jobs)
    if args.dry_run:
        print_expected(args, config, jobs)
        return OK
    program = configured_program(config)
    out = args.out or default_folder(task.name, args.split, program.backend)
    check_outputs(args, jobs, config, written=files_of(out))
    options: dict[str, Any] = {"task": task.name, "split": args.split}
    with ResultsFile(out / "results.jsonl") as results:
        description = made_with(program, config, items_sha256(benchmark.usable), options)
        pin(out, description)
        with continuing(out), within(limits), within_batches(args, results.path, limits):
            rows = ask(program, questions, results, workers=workers, watch=watched)
    measured = {
        "kind": "choice",
        "data": task.name,
        "split": args.split,
        "backend": program.backend,
        "prompts": prompts_named(config, description),
        "skipped": len(benchmark.skipped),
        **choice_figures(rows),
        "limit": args.limit if len(items) < len(benchmark.usable) else None,
        "part": f"first {len(items):,} of {len(benchmark.usable):,}" if len(items) < len(benchmark.usable) else None,
        **about_run(args.argv, out / "results.jsonl"),
    }
    saved(question_report(measured), out, measured["limit"])
    for why in benchmark.skipped[:3]:
        print_error(f"skipped: {why}")
    return SOME_FAILED if any("error" in row for row in rows) else OK
