"""Read self-made sets with known answers, as ``python -m agenticiqa.eval.questions.make PHOTOS OUT`` writes them.

``OUT/own_mcq.json`` is in the form of AgenticIQA-Eval (see ``agenticiqa_eval``) with ``id``, ``kind`` and ``content``.
``OUT/own_descriptions.json`` has a reference text::

    {"id": "3", "query": "Describe ...", "image_path": "images/b.png", "content": "b.jpg", "kind": "Noise",
     "reference_text": "Strong white noise covers the whole photo. ..."}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenticiqa.configs.reading import json_value
from agenticiqa.eval.questions.agenticiqa_eval import items_of
from agenticiqa.eval.questions.task import Item, QuestionTask

CHOICES, DESCRIPTIONS = "own_mcq.json", "own_descriptions.json"
MADE_BY = "a set made from your photos: python -m agenticiqa.eval.questions.make PHOTOS OUT"


def _read_choices(folder: Path, split: str) -> Iterator[Item]:
    yield from items_of(_rows(folder, CHOICES), folder)


def _read_descriptions(folder: Path, split: str) -> Iterator[Item]:
    for row in _rows(folder, DESCRIPTIONS):
        yield _open_item(row, folder, golden=row["reference_text"])


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    if not (folder / name).is_file():
        raise FileNotFoundError(name)
    rows: list[dict[str, Any]] = json_value((folder / name).read_text(encoding="utf-8"))
    return rows


def _open_item(row: dict[str, Any], folder: Path, golden: str | None = None) -> Item:
    reference = row.get("reference_path")
    return Item(
        name=str(row["id"]),
        image=folder / row["image_path"],
        query=row["query"],
        content=str(row["content"]),
        reference=folder / reference if reference else None,
        groups={"kind": row["kind"]},
        golden=golden,
    )


OWN_MCQ = QuestionTask("own-mcq", "self-made: questions with options", "choice", MADE_BY, "own", _read_choices)
OWN_DESCRIPTIONS = QuestionTask(
    "own-descriptions",
    "self-made: descriptions with reference texts",
    "explanation",
    MADE_BY,
    "own",
    _read_descriptions,
)
