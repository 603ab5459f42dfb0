"""BID, Blurred Image Database: 586 photos with and without real blur.

``DatabaseGrades.xlsx``, the first sheet; higher is better. A copy with DatabaseGrades.xls: save it as .xlsx::

    Image Number  Average Subjective Grade  std
    1             ...                       ...

The photo of number 1 is ``ImageDatabase/DatabaseImage0001.JPG``. Every photo is a separate scene.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import sheet_rows
from agenticiqa.eval.tasks.task import Rated, Task

COLUMN = "Average Subjective Grade"


def _read(folder: Path) -> Iterator[Rated]:
    for row in sheet_rows(folder / "DatabaseGrades.xlsx", ("Image Number", COLUMN, "std")):
        name = f"DatabaseImage{int(row['Image Number']):04d}.JPG"
        yield Rated(image=f"ImageDatabase/{name}", score=float(row[COLUMN]), content=name, std=float(row["std"]))


BID = Task(
    name="bid",
    title="BID, photos with real blur",
    kind="no-reference",
    source="BID from A. Ciancio et al., Universidade Federal do Rio de Janeiro",
    folder="BID",
    files=("DatabaseGrades.xlsx",),
    column=COLUMN,
    scale=(0, 5),
    lower_is_better=False,
    count=586,
    read=_read,
    known=("databaseimage0005.jpg", 4.200862),
)
