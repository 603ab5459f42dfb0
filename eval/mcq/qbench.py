"""Q-Bench A1 (LLVisionQA): questions about low-level vision with 2 to 4 options, one image each.

``LLVisionQA-QBench/llvisionqa_dev.json``; ``correct_ans`` is the text of an option, and empty in ``_test``. The images
of ``images.tar`` are in ``images/``::

    [{"img_path": "00022.jpg", "question": "How is the lighting of this building?",
      "candidates": ["High", "Low", "Medium"], "correct_ans": "High", "type": 2, "concern": 1}]
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.eval.mcq.item import Item
from agenticiqa.eval.mcq.task import QuestionTask, file_of, index_of

CONCERNS = ("distortion", "other", "in-context distortion", "in-context other")


def type_names(types: Sequence[int], questions: Sequence[str]) -> dict[int, str]:
    """The names of the question types: 0 is yes-or-no, and of 1 and 2 the one with more questions "How ..." is how.

    The codes are not documented, and published code disagrees: the sample above has a "How" of type 2, while lmms-eval
    calls type 1 how. So the questions themselves decide; where they do not, 1 is what.
    """
    hows = dict.fromkeys((1, 2), 0)
    for code, question in zip(types, questions, strict=True):
        if code in hows and question.strip().lower().startswith("how"):
            hows[code] += 1
    how = 1 if hows[1] > hows[2] else 2
    return {0: "yes-or-no", how: "how", 3 - how: "what"}


def groups_of(kind: int, concern: int, names: Mapping[int, str]) -> dict[str, str]:
    """What figures are broken down by. Raises KeyError or IndexError for codes that there are not."""
    return {"type": names[kind], "concern": CONCERNS[concern]}


def _read(folder: Path, split: str) -> Iterator[Item]:
    file = folder / f"llvisionqa_{split}.json"
    if not file.is_file():
        raise FileNotFoundError(file.name)
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    names = type_names([int(row["type"]) for row in rows], [row["question"] for row in rows])
    for number, row in enumerate(rows):
        options = tuple(row["candidates"])
        yield Item(
            name=f"{number} {row['img_path']}",
            image=file_of(folder, row["img_path"], "images"),
            query=row["question"],
            content=row["img_path"],
            options=options,
            correct=index_of(row.get("correct_ans") or "", options),
            groups=groups_of(int(row["type"]), int(row["concern"]), names),
        )


QBENCH = QuestionTask(
    name="qbench",
    title="Q-Bench A1 (LLVisionQA), JSON and images.tar",
    kind="choice",
    source="llvisionqa_dev.json and images.tar of nanyangtu/LLVisionQA-QBench (Hugging Face)",
    folder="LLVisionQA-QBench",
    read=_read,
    splits=("dev", "test"),
    count=1495,
)
