"""AgenticIQA-Eval: 1,000 questions in four tracks, about images with (250) and without (750) a reference.

The authors' files are not published. This reader takes the form of the paper's examples (arXiv 2509.26006, Fig. 5) as
its public reproduction writes them: ``AgenticIQA-Eval/*.json`` (lists) or ``*.jsonl``, with 2 to 4 options::

    {"question": "How severe is the distortion effect in the image?",
     "options": {"A": "None", "B": "Mild", "C": "Moderate", "D": "Severe"}, "answer": "B",
     "task_type": "executor_distortion", "reference_mode": "NR", "image_path": "images/1.png", "reference_path": null}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.questions.task import Item, QuestionTask, index_of

TRACKS = {
    "planner": "planner",
    "executor_distortion": "distortion",
    "executor_tool": "tool",
    "summarizer": "summarizer",
}
REQUIRED = ("question", "options", "image_path", "task_type", "reference_mode")


def _items_of(rows: list[dict[str, Any]], folder: Path) -> Iterator[Item]:
    """Yield the questions of rows in this form; ``id``, ``content`` and the answer are optional.

    Raises TypeError or ValueError for a row in another form.
    """
    for number, row in enumerate(rows):
        if missing := [key for key in REQUIRED if key not in row]:
            raise ValueError(f"question {number}: the key {missing[0]!r} is missing")
        if row["task_type"] not in TRACKS:
            raise ValueError(f"question {number}: task_type {row['task_type']!r} is none of {', '.join(TRACKS)}")
        offered = row["options"]
        letters = sorted(offered) if isinstance(offered, dict) else []
        options = tuple(offered[letter] for letter in letters) if letters else tuple(offered)
        mode, reference = row["reference_mode"], row.get("reference_path")
        if mode not in ("FR", "NR") or (mode == "FR") != bool(reference):
            raise ValueError(
                f"question {number}: expected reference_mode FR with a reference_path, or NR without one, found "
                f"{mode!r} with {reference!r}"
            )
        yield Item(
            name=str(row.get("id", number)),
            image=folder / row["image_path"],
            query=row["question"],
            content=str(row.get("content") or reference or row["image_path"]),
            options=options,
            correct=index_of(row.get("answer") or "", options),
            reference=folder / reference if reference else None,
            groups={"track": TRACKS[row["task_type"]], "reference": mode},
        )


def _read(folder: Path, split: str) -> Iterator[Item]:
    files = sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")])
    if not files:
        raise FileNotFoundError("*.json or *.jsonl")
    rows: list[dict[str, Any]] = []
    for file in files:
        text = read_text(file)
        if file.suffix == ".jsonl":
            rows += [json_value(line) for line in text.split("\n") if line.strip()]
        else:
            rows += json_value(text)
    yield from _items_of(rows, folder)


AGENTICIQA_EVAL = QuestionTask(
    name="agenticiqa-eval",
    title="AgenticIQA-Eval, four tracks",
    source="the question files of arXiv 2509.26006 (not public yet), or write your own in this format",
    folder="AgenticIQA-Eval",
    read=_read,
    count=1000,
)
