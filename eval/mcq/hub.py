"""Q-Bench A1 and A-Bench as the Hugging Face hub has them: Parquet files with the images in them.

``Q-Bench-HF/data/dev-00000-of-00001.parquet``, shown as JSON; fewer than four options are padded with "N/A"::

    {"id": "llvqa_0", "image": {"bytes": ..., "path": "00022.jpg"}, "question": "Is the image blurry?",
     "option0": "Yes", "option1": "No", "option2": "N/A", "option3": "N/A", "question_type": 0, "question_concern": 0,
     "correct_choice": "A"}

``A-Bench-HF/data/dev-00000-of-00001.parquet`` has ``category`` in place of type and concern::

    {..., "category": "part1 -> bag_of_words -> attribute", "correct_choice": "B"}

The images are written once to the cache folder (see ``labels.embedded``), equal ones to one file, so to one content.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenticiqa.eval.labels.embedded import file_of
from agenticiqa.eval.mcq.item import Item
from agenticiqa.eval.mcq.qbench import groups_of, type_names
from agenticiqa.eval.mcq.task import QuestionTask, index_of

PADDING = "N/A"
OPTIONS = ("option0", "option1", "option2", "option3")


def _read_qbench(folder: Path, split: str) -> Iterator[Item]:
    rows = list(_rows(folder, split))
    names = type_names([int(row["question_type"]) for row, _ in rows], [row["question"] for row, _ in rows])
    for row, image in rows:
        yield _item(row, image, groups_of(int(row["question_type"]), int(row["question_concern"]), names))


def _read_abench(folder: Path, split: str) -> Iterator[Item]:
    for row, image in _rows(folder, split):
        part, *_, leaf = (each.strip() for each in str(row["category"]).split("->"))
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
    """The rows of a split in order, and where the image of each is."""
    import pyarrow.parquet as parquet  # here, as it takes a second to import

    files = sorted((folder / "data").glob(f"{split}-*.parquet"))
    if not files:
        raise FileNotFoundError(f"data/{split}-*.parquet")
    for file in files:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    path, _ = file_of(row.pop("image"), str(row["id"]))
                    yield row, Path(path)


QBENCH_HF = QuestionTask(
    name="qbench-hf",
    title="Q-Bench A1 (LLVisionQA), Parquet",
    kind="choice",
    source="the data/ folder of q-future/Q-Bench-HF (Hugging Face)",
    folder="Q-Bench-HF",
    read=_read_qbench,
    splits=("dev", "test"),
    count=1495,
)
ABENCH = QuestionTask(
    name="abench",
    title="A-Bench, AI-generated images, Parquet",
    kind="choice",
    source="the data/ folder of q-future/A-Bench-HF (Hugging Face)",
    folder="A-Bench-HF",
    read=_read_abench,
    splits=("dev", "test"),
)
