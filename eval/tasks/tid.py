"""TID2013: 25 references, 24 distortions at five strengths each; TID2008: 17 at four strengths, in the same form.

``mos_with_names.txt`` and, in the same order, ``mos_std.txt``; higher is better::

    5.51429 I01_01_1.bmp

``distorted_images/i01_01_1.bmp`` (scene, distortion, strength), ``reference_images/I01.BMP``. The list
and the files differ in case, so names are matched in any case. Scene 25 is computer-generated; some papers exclude it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agenticiqa.eval.tasks.tables import names_by_lower_case
from agenticiqa.eval.tasks.task import Rated, Task


def read_tid(folder: Path) -> Iterator[Rated]:
    """Yield the rows of TID2013 or TID2008."""
    lines = [line.split() for line in (folder / "mos_with_names.txt").read_text().splitlines() if line.strip()]
    deviations = (folder / "mos_std.txt").read_text().split()
    distorted = names_by_lower_case(folder / "distorted_images")
    references = names_by_lower_case(folder / "reference_images")
    for (score, name), std in zip(lines, deviations, strict=True):
        scene, distortion, strength = name.lower().removesuffix(".bmp").split("_")
        reference = references.get(f"{scene}.bmp", f"{scene.upper()}.BMP")
        yield Rated(
            image=f"distorted_images/{distorted.get(name.lower(), name)}",
            score=float(score),
            content=scene.upper(),
            reference=f"reference_images/{reference}",
            std=float(std),
            distortion=distortion,
            level=str(int(strength)),
        )


TID2013 = Task(
    name="tid2013",
    title="TID2013, synthetic distortions",
    kind="full-reference",
    source="tid2013.rar from N. Ponomarenko (ponomarenko.info/tid2013.htm)",
    folder="tid2013",
    files=("mos_with_names.txt", "mos_std.txt"),
    column="MOS",
    scale=(0, 9),
    lower_is_better=False,
    count=3000,
    read=read_tid,
    shows_direction=True,
    known=("i01_01_1.bmp", 5.51429),
)
TID2008 = replace(
    TID2013,
    name="tid2008",
    title="TID2008, synthetic distortions",
    source="tid2008.rar from N. Ponomarenko (ponomarenko.info/tid2008.htm)",
    folder="tid2008",
    count=1700,
    known=None,
)
