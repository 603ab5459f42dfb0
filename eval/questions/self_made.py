"""Read self-made sets with known answers, as ``python -m agenticiqa.eval.questions.make PHOTOS OUT`` writes them.

``OUT/own_mcq.json`` is in the form of AgenticIQA-Eval (see ``agenticiqa_eval``) with ``id``, ``kind`` and ``content``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenticiqa.configs.reading import json_value
from agenticiqa.eval.questions.agenticiqa_eval import items_of
from agenticiqa.eval.questions.task import Item, QuestionTask

CHOICES = "own_mcq.json"
MADE_BY = "a set made from your photos: python -m agenticiqa.eval.questions.make PHOTOS OUT"


def _read_choices(folder: Path, split: str) -> Iterator[Item]:
    yield from items_of(_rows(folder, CHOICES), folder)


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    if not (folder / name).is_file():
        raise FileNotFoundError(name)
    rows: list[dict[str, Any]] = json_value((folder / name).read_text(encoding="utf-8"))
    return rows


OWN_MCQ = QuestionTask("own-mcq", "self-made: questions with options", MADE_BY, "own", _read_choices)
