"""SPAQ: 11125 photos from 66 smartphones.

``Annotations/MOS and Image attribute scores.xlsx``, header in the first line; higher is better::

    Image name  MOS   Brightness  Colorfulness  Contrast  Noisiness  Sharpness
    11125.jpg   10.8  30.2        43.4          34.6      32.2       8.5

Photos are in ``TestImage``, up to 12 megapixels and more. They are measured at full size; papers often scale the
shorter side to 512. Scene categories (another sheet) are kinds of scenes, so every photo is a separate scene.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import sheet_rows
from agenticiqa.eval.tasks.task import Rated, Task

LABELS = "Annotations/MOS and Image attribute scores.xlsx"


def _read(folder: Path) -> Iterator[Rated]:
    for row in sheet_rows(folder / LABELS, ("Image name", "MOS")):
        name = row["Image name"]
        yield Rated(image=f"TestImage/{name}", score=float(row["MOS"]), content=name)


SPAQ = Task(
    name="spaq",
    title="SPAQ, photos from smartphones",
    kind="no-reference",
    source="SPAQ from github.com/h4nwei/SPAQ",
    folder="SPAQ",
    files=(LABELS,),
    column="MOS",
    scale=(0, 100),
    lower_is_better=False,
    count=11125,
    read=_read,
    known=("11125.jpg", 10.8),
)
