"""PIPAL, the training part, which has public labels: 200 references, 116 distorted or restored images of each.

``Train_Label/A0001.txt``, one file per reference; an Elo rating of pairwise comparisons, higher is better::

    A0001_00_00.bmp,1520.0648

``Train_Ref/A0001.bmp``; the images are in ``Distortion_1`` to ``Distortion_4``, by archive. Names hold the reference,
the kind of distortion and a running number, which is not a strength, so the direction can't be checked. Elo has no
ends: the scale is the range of the training part (916.7 to 1836.0), rounded outwards.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.task import Rated, Task


def _read(folder: Path) -> Iterator[Rated]:
    place = {file.name: f"{file.parent.name}/{file.name}" for file in folder.glob("Distortion_[1-4]/*.bmp")}
    for labels in sorted((folder / "Train_Label").glob("*.txt")):
        with labels.open(encoding="utf-8-sig", newline="") as file:
            for name, rating in csv.reader(file):
                reference, distortion, _ = name.removesuffix(".bmp").split("_")
                yield Rated(
                    image=place.get(name, f"Distortion_1/{name}"),
                    score=float(rating),
                    content=reference,
                    reference=f"Train_Ref/{reference}.bmp",
                    distortion=distortion,
                    split="train",
                )


PIPAL = Task(
    name="pipal",
    title="PIPAL, training part: distorted and restored images",
    kind="full-reference",
    source="the training archives of PIPAL (github.com/HaomingCai/PIPAL-dataset)",
    folder="PIPAL",
    files=("Train_Label",),
    column="Elo",
    scale=(900, 1850),
    lower_is_better=False,
    count=23200,
    read=_read,
    known=("a0001_00_00.bmp", 1520.0648),
)
