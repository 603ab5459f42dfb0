"""AGIQA-3K: 2982 images that ten settings of six generators made of 300 prompts.

``data.csv`` beside the images; ``mos_quality`` is read, higher is better, on a scale of 0 to 5; ``mos_align``, how well
the image follows the prompt, is not::

    name,prompt,adj1,adj2,style,mos_quality,std_quality,mos_align,std_align
    AttnGAN_normal_000.jpg,statue of a man,,,,0.965602553,0.223270101,0.40889324,0.615607722

A prompt is a scene. The generator includes its setting. The archive may have a folder around the images, but they
are expected beside data.csv.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import csv_rows
from agenticiqa.eval.tasks.task import Rated, Task


def _read(folder: Path) -> Iterator[Rated]:
    for row in csv_rows(folder / "data.csv"):
        yield Rated(
            image=row["name"],
            score=float(row["mos_quality"]),
            content=row["prompt"],
            std=float(row["std_quality"]),
            generator=row["name"].rpartition("_")[0],
        )


AGIQA3K = Task(
    name="agiqa3k",
    title="AGIQA-3K, generated images",
    kind="AI-generated",
    source="data.csv and the images of github.com/lcysyzxdxc/AGIQA-3k-Database",
    folder="AGIQA-3K",
    files=("data.csv",),
    column="mos_quality",
    scale=(0, 5),
    lower_is_better=False,
    count=2982,
    read=_read,
    known=("attngan_normal_000.jpg", 0.965602553),
    sha256={"data.csv": "311b9c0dc6d8e203fb4b27e070fca6cde87fa3c0dbfb880e197ee1304bba4828"},
)
