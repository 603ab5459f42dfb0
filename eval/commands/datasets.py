"""``agenticiqa datasets``: the public sets that ``evaluate`` reads by name, and a check of a copy on disk."""

from collections import Counter
from pathlib import Path

from agenticiqa.eval.commands.arguments import DatasetsOptions
from agenticiqa.eval.datasets import MISSING_SHOWN
from agenticiqa.eval.labels.near_duplicates import near_duplicates, near_duplicates_doubt
from agenticiqa.eval.names import named, unknown_text
from agenticiqa.eval.questions.catalog import QUESTION_TASKS, refuse_pairs
from agenticiqa.eval.questions.task import QuestionTask, items_sha256, read_items
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.eval.tasks.task import Task, labels_sha256, missing_files, other_files, read_task
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_text
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, show, writes_files
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.table import UNDEFINED, Table, number


def run(args: DatasetsOptions) -> int:
    """List all data sets, describe one, or check a copy of it; status 1 if the copy is incomplete."""
    check_outputs(args)
    if args.name is None:
        if args.root:
            raise UserError("--root needs the NAME of a data set; `agenticiqa datasets` lists the names")
        return OK if show(args, View([_listed(), _questions_listed()])) else SOME_FAILED
    if args.json or writes_files(args):
        raise UserError("tables are of all data sets: leave out NAME, or the options for JSON and files")
    if questions := named(args.name, QUESTION_TASKS):
        return _print_questions(questions, args.root)
    refuse_pairs(args.name)
    task = named(args.name, TASKS)
    if task is None:
        raise UserError(unknown_text(args.name, (*TASKS, *QUESTION_TASKS)))
    print_text(f"{task.name}: {task.title} ({task.kind})")
    print_text(
        f"- {task.count} images; column {task.column} of {', '.join(task.files)}, {task.scale_text}, {task.direction}"
    )
    print_text(f"- download {task.source}; unpack it to DIR/{task.folder}")
    return _checked(task, args.root) if args.root else OK


def _checked(task: Task, root: Path) -> int:
    labels = read_task(task, root, partial=True)
    missing = missing_files(labels)
    scores = [label.mos for label in labels]
    print_text(f"- {len(labels)} of {task.count} labels in {root}, {len({label.content for label in labels})} scenes")
    check = "confirmed by the labels" if task.shows_direction else "as documented; the labels cannot confirm it"
    print_text(f"- MOS from {min(scores):g} to {max(scores):g}, higher is better ({check})")
    print_text(f"- SHA-256 of the labels: {labels_sha256(labels)}")
    known = (
        "the label files are the official ones"
        if task.sha256
        else "the label files were not verified, because this version has no SHA-256 of the official ones"
    )
    print_text(f"- {other_files(task, root) or known}")
    examples = ", such as " + ", ".join(map(str, missing[:MISSING_SHOWN])) if missing else ""
    print_text(f"- missing files: {len(missing)}{examples}")
    if not missing:
        pairs = near_duplicates(labels, lambda paths, total: render.progress(paths, total, "comparing scenes"))
        print_text(f"- {near_duplicates_doubt(pairs, labels) or 'no near duplicates found in different scenes'}")
    return OK if len(labels) == task.count and not missing else SOME_FAILED


def _listed() -> Table:
    """Return all data sets of ratings, one per line."""
    lines = [
        [task.name, task.title, task.kind, number(task.count, "d"), task.column, task.scale_text, task.direction]
        for task in TASKS.values()
    ]
    return Table(("name", "data set", "kind", "images", "label column", "scale", "direction"), lines, "Data sets")


def _questions_listed() -> Table:
    """Return all question benchmarks, one per line."""
    lines = [
        [task.name, task.title, number(task.count or None, "d"), ", ".join(filter(None, task.splits)) or UNDEFINED]
        for task in QUESTION_TASKS.values()
    ]
    return Table(("name", "questions about images", "questions", "splits"), lines, "Questions about images")


def _print_questions(task: QuestionTask, root: Path | None) -> int:
    """Describe a benchmark and, with ``root``, check a copy; status 1 if questions are skipped or missing."""
    print_text(f"{task.name}: {task.title}")
    print_text(f"- download {task.source}; unpack it to DIR/{task.folder}")
    if root is None:
        return OK
    benchmark = read_items(task, root)
    items = benchmark.usable
    expected = f" of {task.count}" if task.count else ""
    print_text(f"- {len(items)}{expected} questions in {root}, on {len({item.content for item in items})} scenes")
    for key in dict.fromkeys(key for item in items for key in item.groups):
        counts = Counter(item.groups.get(key, "-") for item in items)
        print_text(f"- {key}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}")
    print_text(f"- SHA-256 of the questions: {items_sha256(items)}")
    for why in benchmark.skipped:
        print_text(f"- skipped: {why}")
    return OK if not benchmark.skipped and task.count in (None, len(items)) else SOME_FAILED
