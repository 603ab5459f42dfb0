"""What ``agenticiqa datasets`` says of benchmarks of questions."""

from collections import Counter
from pathlib import Path

from rich.table import Table

from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.task import QuestionTask, items_sha256, read_items
from agenticiqa.programs.cli.status import OK, SOME_FAILED


def listed() -> Table:
    """All of them, one a line."""
    table = Table("name", "questions about images", "kind", "questions", "splits", box=None)
    for task in QUESTION_TASKS.values():
        table.add_row(
            task.name, task.title, task.kind, str(task.count or "-"), ", ".join(filter(None, task.splits)) or "-"
        )
    return table


def told(task: QuestionTask, root: Path | None, split: str | None = None) -> int:
    """Tell about one, and with ``root`` check the copy there; status 1 if questions of it are left out or missing."""
    print(f"{task.name}: {task.title} ({task.kind})")
    print(f"- get {task.source}; put it to DIR/{task.folder}")
    if root is None:
        return OK
    found = read_items(task, root, split)
    items = found.usable
    expected = f" of {task.count}" if task.count else ""
    print(f"- {len(items)}{expected} questions in {root}, about {len({item.content for item in items})} contents")
    for key in dict.fromkeys(key for item in items for key in item.groups):
        counts = Counter(item.groups.get(key, "-") for item in items)
        print(f"- {key}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}")
    print(f"- SHA-256 of the questions: {items_sha256(items)}")
    for why in found.left_out:
        print(f"- left out: {why}")
    return OK if not found.left_out and task.count in (None, len(items)) else SOME_FAILED
