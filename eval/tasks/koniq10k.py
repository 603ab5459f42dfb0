"""KonIQ-10k: 10073 photos from the web, with the official training, validation and test sets.

``koniq10k_distributions_sets.csv``; c1 to c5 are the shares of the votes, MOS is on 0..100, higher is better, while SD
is that of the votes on 1..5 (so there is no standard deviation of the MOS here)::

    image_name,c1,c2,c3,c4,c5,c_total,MOS,SD,set
    10004473376.jpg,0.0,0.0,0.238095238095,0.695238095238,0.0666666666667,105,77.3836206897,0.527277894494,training

Images are in ``1024x768``, the size that was rated. The table beside the images, koniq10k_scores_and_distributions.csv,
has no sets, and its MOS is on 1..5: it is not read.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agenticiqa.eval.tasks.tables import csv_rows
from agenticiqa.eval.tasks.task import Rated, Task


def _read(folder: Path) -> Iterator[Rated]:
    rows = csv_rows(folder / "koniq10k_distributions_sets.csv")
    scores = [float(row["MOS"]) for row in rows]
    votes = [sum(number * float(row[f"c{number}"]) for number in range(1, 6)) for row in rows]
    if np.corrcoef(votes, scores)[0, 1] < 0.5:
        raise ValueError("MOS does not follow the mean of the votes c1 to c5")
    for row, score in zip(rows, scores, strict=True):
        name = row["image_name"]
        yield Rated(image=f"1024x768/{name}", score=score, content=name, split=row["set"])


KONIQ10K = Task(
    name="koniq10k",
    title="KonIQ-10k, photos from the web",
    kind="no-reference",
    source="the 1024x768 images from the University of Konstanz (database.mmsp-kn.de), and "
    "koniq10k_distributions_sets.csv from github.com/subpic/koniq (metadata)",
    folder="koniq10k",
    files=("koniq10k_distributions_sets.csv",),
    column="MOS",
    scale=(0, 100),
    lower_is_better=False,
    count=10073,
    read=_read,
    shows_direction=True,
    known=("10004473376.jpg", 77.3836),
    sha256={
        "koniq10k_distributions_sets.csv": "d0bd1ad54a60bc36fe172049e46ac76c83554e50ab84acebfd47b82b3e698a0a",
    },
)
