"""CLIVE, LIVE In the Wild Image Quality Challenge: 1162 photos from mobile cameras.

``Data/``: ``AllImages_release.mat`` (1169 x 1 cells), ``AllMOS_release.mat`` and ``AllStdDev_release.mat`` (1 x 1169),
named by their variables; higher is better::

    1160.bmp  MOS 21.6859  standard deviation 15.1148

The first seven, t1.bmp to t7.bmp in ``Images/trainingImages``, were used to train the raters and are not part of the
set. The rest is in ``Images``. Every photo is a separate scene.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import mat_arrays, texts
from agenticiqa.eval.tasks.task import Rated, Task

TRAINING = 7


def _read(folder: Path) -> Iterator[Rated]:
    images, scores, deviations = (
        mat_arrays(folder / f"Data/{name}.mat")[name].ravel()
        for name in ("AllImages_release", "AllMOS_release", "AllStdDev_release")
    )
    names = texts(images)
    if not all(name.startswith("t") for name in names[:TRAINING]):
        raise ValueError(f"expected t1 to t{TRAINING} as the first images, found {', '.join(names[:TRAINING])}")
    rows = list(zip(names, scores, deviations, strict=True))
    for name, score, std in rows[TRAINING:]:
        yield Rated(image=f"Images/{name}", score=float(score), content=name, std=float(std))


CLIVE = Task(
    name="clive",
    title="CLIVE (LIVE In the Wild Challenge), photos",
    kind="no-reference",
    source="ChallengeDB_release from LIVE, UT Austin (live.ece.utexas.edu/research/ChallengeDB)",
    folder="ChallengeDB_release",
    files=tuple(f"Data/{name}_release.mat" for name in ("AllImages", "AllMOS", "AllStdDev")),
    column="AllMOS_release",
    scale=(0, 100),
    lower_is_better=False,
    count=1162,
    read=_read,
    known=("1160.bmp", 21.6859),
)
