"""Read Q-Bench A1 (LLVisionQA), as JSON and as Parquet, and A-Bench: questions with 2 to 4 options, one image each.

``LLVisionQA-QBench/llvisionqa_dev.json``; ``correct_ans`` is the text of an option, and empty in ``_test``. The images
of ``images.tar`` are in ``images/``::

    [{"img_path": "00022.jpg", "question": "How is the lighting of this building?",
      "candidates": ["High", "Low", "Medium"], "correct_ans": "High", "type": 2, "concern": 1}]

``Q-Bench-HF/data/dev-00000-of-00001.parquet`` of the Hugging Face hub has the images in it (shown as JSON); fewer than
four options are padded with "N/A"::

    {"id": "llvqa_0", "image": {"bytes": ..., "path": "00022.jpg"}, "question": "Is the image blurry?",
     "option0": "Yes", "option1": "No", "option2": "N/A", "option3": "N/A", "question_type": 0, "question_concern": 0,
     "correct_choice": "A"}

``A-Bench-HF/data/dev-00000-of-00001.parquet`` has ``category`` in place of type and concern::

    {..., "category": "part1 -> bag_of_words -> attribute", "correct_choice": "B"}

Embedded images are written once to the cache folder (see ``labels.embedded``), equal ones to one file, so one scene.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.labels import embedded
from agenticiqa.eval.questions.task import Item, QuestionTask, file_of, index_of

CONCERNS = ("distortion", "other", "in-context distortion", "in-context other")


def type_names(types: Sequence[int], questions: Sequence[str]) -> dict[int, str]:
    """Return the names of the question types: 0 is yes-or-no; 1 or 2, whichever has more "How ..." questions, is how.

    The codes are not documented, and published code disagrees: the sample above has a "How" of type 2, while lmms-eval
    calls type 1 how. So the questions themselves decide; if they do not, 1 is what.
    """
    hows = dict.fromkeys((1, 2), 0)
    for code, question in zip(types, questions, strict=True):
        if code in hows and question.strip().lower().startswith("how"):
            hows[code] += 1
    how = 1 if hows[1] > hows[2] else 2
    return {0: "yes-or-no", how: "how", 3 - how: "what"}


def groups_of(kind: int, concern: int, names: Mapping[int, str]) -> dict[str, str]:
    """Return the groups for breakdowns. Raises KeyError or IndexError for unknown codes."""
    return {"type": names[kind], "concern": CONCERNS[concern]}


def _read_json(folder: Path, split: str) -> Iterator[Item]:
    file = folder / f"llvisionqa_{split}.json"
    if not file.is_file():
        raise FileNotFoundError(file.name)
    rows: list[dict[str, Any]] = json_value(read_text(file))
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
    source="llvisionqa_dev.json and images.tar of nanyangtu/LLVisionQA-QBench (Hugging Face)",
    folder="LLVisionQA-QBench",
    read=_read_json,
    splits=("dev", "test"),
    count=1495,
)


PADDING = "N/A"
OPTIONS = ("option0", "option1", "option2", "option3")


def _read_qbench(folder: Path, split: str) -> Iterator[Item]:
    rows = list(_rows(folder, split))
    names = type_names([int(row["question_type"]) for row, _ in rows], [row["question"] for row, _ in rows])
    for row, image in rows:
        yield _item(row, image, groups_of(int(row["question_type"]), int(row["question_concern"]), names))


def _read_abench(folder: Path, split: str) -> Iterator[Item]:
    for row, image in _rows(folder, split):
        part, *_, leaf = (name.strip() for name in str(row["category"]).split("->"))
        yield _item(row, image, {"part": part, "category": leaf})


def _item(row: Mapping[str, Any], image: Path, groups: Mapping[str, str]) -> Item:
    options = tuple(str(row[key]) for key in OPTIONS if row.get(key) not in (None, "", PADDING))
    return Item(
        name=str(row["id"]),
        image=image,
        query=row["question"],
        content=image.name,
        options=options,
        correct=index_of(row.get("correct_choice") or "", options),
        groups=groups,
    )


def _rows(folder: Path, split: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield the rows of a split in order, each with the place of its image."""
    import pyarrow.parquet as parquet  # a late import, as it takes a second

    files = sorted((folder / "data").glob(f"{split}-*.parquet"))
    if not files:
        raise FileNotFoundError(f"data/{split}-*.parquet")
    for file in files:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    path, _ = embedded.file_of(row.pop("image"), str(row["id"]))
                    yield row, Path(path)


QBENCH_HF = QuestionTask(
    name="qbench-hf",
    title="Q-Bench A1 (LLVisionQA), Parquet",
    source="the data/ folder of q-future/Q-Bench-HF (Hugging Face)",
    folder="Q-Bench-HF",
    read=_read_qbench,
    splits=("dev", "test"),
    count=1495,
)
ABENCH = QuestionTask(
    name="abench",
    title="A-Bench, AI-generated images, Parquet",
    source="the data/ folder of q-future/A-Bench-HF (Hugging Face)",
    folder="A-Bench-HF",
    read=_read_abench,
    splits=("dev", "test"),
)
