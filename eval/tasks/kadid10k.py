"""KADID-10k: 81 references, 25 distortions at 5 strengths each.

``kadid10k/dmos.csv``; higher is better, despite the column's name::

    dist_img,ref_img,dmos,var
    I01_01_01.png,I01.png,4.57,0.496
    I47_08_05.png,I47.png,1.03,0.18

``var`` is a standard deviation, despite its name: 30 ratings from 1 to 5 with a mean of 1.03 are one 2 and 29 times 1,
with a variance of .032 and a standard deviation of .18.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import csv_rows
from agenticiqa.eval.tasks.task import Rated, Task


def _read(folder: Path) -> Iterator[Rated]:
    for row in csv_rows(folder / "dmos.csv"):
        content, distortion, strength = row["dist_img"].split(".")[0].split("_")
        yield Rated(
            image=f"images/{row['dist_img']}",
            score=float(row["dmos"]),
            content=content,
            reference=f"images/{row['ref_img']}",
            std=float(row["var"]),
            distortion=distortion,
            level=str(int(strength)),
        )


KADID10K = Task(
    name="kadid10k",
    title="KADID-10k, synthetic distortions",
    kind="full-reference",
    source="kadid10k.zip from the University of Konstanz (database.mmsp-kn.de)",
    folder="kadid10k",
    files=("dmos.csv",),
    column="dmos",
    scale=(1, 5),
    lower_is_better=False,
    count=10125,
    read=_read,
    shows_direction=True,
    known=("i01_01_01.png", 4.57),
)
