"""CSIQ: 30 references, six distortions at four or five strengths each.

``csiq.DMOS.xlsx``, sheet ``all_by_image``, from the fourth line and column D on; lower is better::

    image   dst_idx  dst_type  dst_lev  dmos_std  dmos
    turtle  ...      contrast  4        ...       0.554236

``src_imgs/turtle.png``, ``dst_imgs/contrast/turtle.contrast.4.png``, ``dst_imgs/awgn/turtle.AWGN.1.png``; the two
folders and the sheet are downloaded separately.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import sheet_rows
from agenticiqa.eval.tasks.task import Rated, Task

FILES = {  # folder and word in the file names, by dst_type
    "noise": ("awgn", "AWGN"),
    "blur": ("blur", "BLUR"),
    "contrast": ("contrast", "contrast"),
    "fnoise": ("fnoise", "fnoise"),
    "jpeg": ("jpeg", "JPEG"),
    "jpeg 2000": ("jpeg2000", "jpeg2000"),
}


def _read(folder: Path) -> Iterator[Rated]:
    columns = ("image", "dst_type", "dst_lev", "dmos_std", "dmos")
    for row in sheet_rows(folder / "csiq.DMOS.xlsx", columns, "all_by_image"):
        scene, strength = str(row["image"]), str(int(row["dst_lev"]))
        kind, word = FILES[row["dst_type"]]
        yield Rated(
            image=f"dst_imgs/{kind}/{scene}.{word}.{strength}.png",
            score=float(row["dmos"]),
            content=scene,
            reference=f"src_imgs/{scene}.png",
            std=float(row["dmos_std"]),
            distortion=kind,
            level=strength,
        )


CSIQ = Task(
    name="csiq",
    title="CSIQ, synthetic distortions",
    kind="full-reference",
    source="csiq.DMOS.xlsx, src_imgs.zip and dst_imgs.zip from E. C. Larson and D. M. Chandler, Oklahoma State Univ.",
    folder="CSIQ",
    files=("csiq.DMOS.xlsx",),
    column="dmos",
    scale=(0, 1),
    lower_is_better=True,
    count=866,
    read=_read,
    shows_direction=True,
    known=("turtle.contrast.4.png", 0.554236),
)
