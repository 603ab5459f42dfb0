"""LIVE Multiply Distorted: 15 references; blur with JPEG (part 1) and blur with noise (part 2), 225 images each.

Each part has ``Imagelists.mat`` (``distimgs`` and ``refimgs``: cells of names; ``ref4dist``: which reference, from 1)
and ``Scores.mat`` (``DMOSscores``, lower is better)::

    Part 1/blurjpeg/seals.bmp  Part 1/blurjpeg/seals_blur1_jpeg2.bmp  DMOS 44.3684
    Part 2/blurnoise/cows.bmp  Part 2/blurnoise/cows_noise2.bmp       DMOS 30.5556

Both parts show the same scenes, so a scene has the same name in both. The strength is the sum of the strengths in the
name. If a copy has a folder To_Release in between, name that folder with --root.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import mat_arrays, texts
from agenticiqa.eval.tasks.task import Rated, Task

PARTS = {"Part 1": "blurjpeg", "Part 2": "blurnoise"}
DAMAGE = re.compile(r"_(blur|jpeg|noise)(\d)")


def _read(folder: Path) -> Iterator[Rated]:
    for part, name in PARTS.items():
        lists, images = mat_arrays(folder / part / "Imagelists.mat"), f"{part}/{name}"
        references = texts(lists["refimgs"])
        scores = mat_arrays(folder / part / "Scores.mat")["DMOSscores"].ravel()
        for image, number, score in zip(texts(lists["distimgs"]), lists["ref4dist"].ravel(), scores, strict=True):
            reference = references[int(number) - 1]
            damage = dict(DAMAGE.findall(image))
            if not damage or not image.startswith(f"{reference.removesuffix('.bmp')}_"):
                raise ValueError(f"{image} is not a distorted copy of {reference}")
            yield Rated(
                image=f"{images}/{image}",
                score=float(score),
                content=reference,
                reference=f"{images}/{reference}",
                distortion="+".join(damage),
                level=str(sum(map(int, damage.values()))),
            )


LIVE_MD = Task(
    name="live-md",
    title="LIVE Multiply Distorted",
    kind="full-reference",
    source="the LIVE Multiply Distorted database from LIVE, The University of Texas at Austin "
    "(live.ece.utexas.edu/research/Quality)",
    folder="LIVEmultidistortiondatabase",
    files=tuple(f"{part}/{file}" for part in PARTS for file in ("Imagelists.mat", "Scores.mat")),
    column="DMOSscores",
    scale=(0, 100),
    lower_is_better=True,
    count=450,
    read=_read,
    shows_direction=True,
    known=("seals_blur1_jpeg2.bmp", 44.3684),
)
