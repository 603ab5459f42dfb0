"""BIQ2021: 12000 photos, with the official training and test part.

``Train (Images and MOS).csv`` and ``Test (Images and MOS).csv``, with empty columns behind; higher is better::

    Image Name,MOS,,
    ss03 (2898).jpg,0.8089

Photos are in ``Images``. As in published figures, every photo counts as a separate scene, though the official parts
share scenes: photos named ss01 are series of one scene with different camera settings. Every fifth test photo resembles
a training photo: their gray copies of 16 x 16 pixels correlate by .9 or more.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import csv_rows
from agenticiqa.eval.tasks.task import Rated, Task

FILES = {"train": "Train (Images and MOS).csv", "test": "Test (Images and MOS).csv"}


def _read(folder: Path) -> Iterator[Rated]:
    for split, file in FILES.items():
        for row in csv_rows(folder / file):
            name = row["Image Name"]
            yield Rated(image=f"Images/{name}", score=float(row["MOS"]), content=name, split=split)


BIQ2021 = Task(
    name="biq2021",
    title="BIQ2021, photos",
    kind="no-reference",
    source="BIQ2021 from github.com/nisarahmedrana/BIQ2021",
    folder="BIQ2021",
    files=tuple(FILES.values()),
    column="MOS",
    scale=(0, 1),
    lower_is_better=False,
    count=12000,
    read=_read,
    known=("ss03 (2898).jpg", 0.8089),
    sha256={
        FILES["train"]: "1f0c28a28d78903c9064190af8882e03643c9a240bb05ce4f4a4bbe7950ac87e",
        FILES["test"]: "2f8579d5e9647015c9d516613dfd91ec651d74a390a5c6a47a7bbb2e189d157d",
    },
)
