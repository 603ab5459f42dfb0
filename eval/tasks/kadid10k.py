"""KADID-10k: 81 references, 25 distortions at 5 levels each.

``kadid10k/dmos.csv``; higher is better, despite the column's name, and ``var`` is a variance::

    dist_img,ref_img,dmos,var
    I01_01_01.png,I01.png,4.57,0.496
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.task import Rated, Task


def _read(folder: Path) -> Iterator[Rated]:
    with (folder / "dmos.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            content, distortion, level = row["dist_img"].split(".")[0].split("_")
            yield Rated(
                image=f"images/{row['dist_img']}",
                opinion=float(row["dmos"]),
                content=content,
                reference=f"images/{row['ref_img']}",
                std=math.sqrt(float(row["var"])),
                distortion=distortion,
                level=str(int(level)),
            )


KADID10K = Task(
    name="kadid10k",
    title="KADID-10k, synthetic distortions",
    source="kadid10k.zip from the University of Konstanz (database.mmsp-kn.de)",
    folder="kadid10k",
    files=("dmos.csv",),
    column="dmos",
    scale=(1, 5),
    lower_is_better=False,
    count=10125,
    read=_read,
)
