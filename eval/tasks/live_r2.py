"""LIVE release 2: 29 references, five distortions; 779 distorted images and 203 copies of the references.

Two tables are in use, and differ: ``dmos.mat`` (``dmos``), and ``dmos_realigned.mat`` (``dmos_new``, ``dmos_std``),
which papers since 2006 use. Both have ``orgs`` (1: an undamaged copy), 1 x 982 in the order of the folders::

    jp2k/img1.bmp..img227.bmp  jpeg/img1..233  wn/img1..174  gblur/img1..174  fastfading/img1..174  refimgs/NAME.bmp
    refnames_all.mat  refnames_all: 1 x 982 cells, such as 'studentsculpture.bmp'
    dmos.mat  dmos of jp2k/img2.bmp: 28.0038           dmos_realigned.mat  dmos_new of the same image: 15.5130

Files of one name in two folders show different scenes: the reference is the scene.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from agenticiqa.eval.tasks.tables import mat_arrays, texts
from agenticiqa.eval.tasks.task import Rated, Task

FOLDERS = {"jp2k": 227, "jpeg": 233, "wn": 174, "gblur": 174, "fastfading": 174}


def _read(folder: Path, table: str, column: str) -> Iterator[Rated]:
    labels = mat_arrays(folder / table)
    references = texts(mat_arrays(folder / "refnames_all.mat")["refnames_all"])
    images = [(kind, f"{kind}/img{number}.bmp") for kind, count in FOLDERS.items() for number in range(1, count + 1)]
    deviations = labels["dmos_std"].ravel() if "dmos_std" in labels else np.full(len(images), np.nan)
    rows = zip(images, references, labels[column].ravel(), labels["orgs"].ravel(), deviations, strict=True)
    for (kind, image), reference, score, pristine, std in rows:
        yield Rated(
            image=image,
            score=float(score),
            content=reference,
            reference=f"refimgs/{reference}",
            std=None if np.isnan(std) else float(std),
            distortion=kind,
            pristine=bool(pristine),
        )


LIVE_R2 = Task(
    name="live-r2",
    title="LIVE release 2, realigned DMOS",
    kind="full-reference",
    source="databaserelease2 from LIVE, The University of Texas at Austin (live.ece.utexas.edu/research/Quality)",
    folder="databaserelease2",
    files=("dmos_realigned.mat", "refnames_all.mat"),
    column="dmos_new",
    scale=(-20, 120),  # realigned values go a little beyond 0 and 100; MOS = 100 - DMOS
    lower_is_better=True,
    count=779,
    read=partial(_read, table="dmos_realigned.mat", column="dmos_new"),
    shows_direction=True,
)
LIVE_R2_ORIGINAL = replace(
    LIVE_R2,
    name="live-r2-original",
    title="LIVE release 2, DMOS as first published",
    files=("dmos.mat", "refnames_all.mat"),
    column="dmos",
    scale=(0, 100),
    read=partial(_read, table="dmos.mat", column="dmos"),
)
