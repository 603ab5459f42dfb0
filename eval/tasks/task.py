"""Declare the properties of a data set, and read its rows as ``LabeledImage``, checked against them."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Literal

from agenticiqa.eval.datasets import LEAST_SPAN, MISSING_SHOWN, LabeledImage
from agenticiqa.eval.names import plain
from agenticiqa.eval.tasks.readers import Cells
from agenticiqa.programs.errors import UserError

Kind = Literal["full-reference", "no-reference", "AI-generated"]
IDENTIFYING = ("name", "mos", "mos_std", "content", "distortion", "level", "split")  # fields of every label's digest


@dataclass(frozen=True)
class Rated:
    """A row of an archive: paths relative to its folder, ``score`` (and its ``std``) as in its label table.

    ``content`` is the scene. ``level`` is the distortion's strength, ``generator`` made the image. A ``pristine`` row
    is an undamaged copy: it shows which end of the scale is good, and is not evaluated.
    """

    image: str
    score: float
    content: str
    reference: str | None = None
    std: float | None = None
    distortion: str | None = None
    level: str | None = None
    split: str | None = None
    generator: str | None = None
    pristine: bool = False


@dataclass(frozen=True)
class Fields:
    """The fields of a label, made of the cells of its row.

    The texts have names of cells in braces. ``image`` and ``reference`` are paths below the archive's folder, and
    ``content``, the scene, is the image's file name by default. ``std`` and ``pristine`` name columns. ``parts`` is a
    pattern in the path of the image, in any case; its named groups are cells, too.
    """

    image: str
    reference: str | None = None
    content: str | None = None
    std: str | None = None
    distortion: str | None = None
    level: str | None = None
    split: str | None = None
    generator: str | None = None
    pristine: str | None = None
    parts: str | None = None

    def row(self, cells: Cells, column: str) -> Rated:
        """Return a row of the archive; its score is in ``column``. Raises KeyError and ValueError for other cells."""
        image = self.image.format_map(cells)
        if self.parts:
            found = re.search(self.parts, image, re.IGNORECASE)
            if found is None:
                raise ValueError(f"{image} is not a name of this data set")
            cells = {**cells, **found.groupdict()}
        score, std = float(cells[column]), float(cells[self.std]) if self.std else math.nan

        def text(template: str | None) -> str | None:
            return template and template.format_map(cells)

        return Rated(
            image=image,
            score=score,
            content=text(self.content) or PurePosixPath(image).name,
            reference=text(self.reference),
            std=None if math.isnan(std) else std,
            distortion=text(self.distortion),
            level=text(self.level),
            split=text(self.split),
            generator=text(self.generator),
            pristine=bool(self.pristine and cells[self.pristine]),
        )


@dataclass(frozen=True)
class Task:
    """A data set: how to read its archive, and which properties its labels must have.

    ``folder`` is the archive's top folder and ``files`` are the label files below it. ``read`` gets both and returns
    the rows, with the score in ``column``. ``scale`` holds the ends of this column; if ``lower_is_better``, scores are
    mirrored in the scale to get MOS. ``count`` is the number of images of the whole set. With ``shows_direction``,
    strengths, undamaged copies or votes in the archive show which end is good, and are checked when it is read;
    otherwise the direction is only declared. ``source`` describes the download. ``known`` is the end of an image's
    path, in lower case, with its score in the official table. ``sha256`` has the hashes of the official label files
    (line ends as LF) by path, if the authors' own repositories provide them.
    """

    name: str
    title: str
    kind: Kind
    source: str
    folder: str
    files: tuple[str, ...]
    column: str
    scale: tuple[float, float]
    lower_is_better: bool
    count: int
    read: Callable[[Path, Sequence[str]], Iterable[Cells]]
    fields: Fields
    shows_direction: bool = False
    known: tuple[str, float] | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def direction(self) -> str:
        """Return the direction of the label column, in words."""
        return "lower is better" if self.lower_is_better else "higher is better"

    @property
    def scale_text(self) -> str:
        """Return the ends of the label column, as ``1..5``."""
        return "..".join(f"{end:g}" for end in self.scale)


def by_name(*tasks: Task) -> dict[str, Task]:
    """Return the rows by name. Raises ValueError for two names that differ only in case, blanks and hyphens."""
    names = [plain(task.name) for task in tasks]
    if repeated := [task.name for task in tasks if names.count(plain(task.name)) > 1]:
        raise ValueError(f"eval/tasks/catalog.py: two rows have one name, {' and '.join(repeated)}; rename one of them")
    return {task.name: task for task in tasks}


def archive_of(task: Task, root: Path) -> Path:
    """Return the archive's folder: ``root`` or the folder of its name below. Raises UserError for missing files."""
    folder = root / task.folder if (root / task.folder).is_dir() else root
    absent = [name for name in task.files if not (folder / name).exists()]
    if absent:
        raise UserError(
            f"{task.name}: {', '.join(absent)} not found in {root} or {root / task.folder}; download {task.source}, "
            f"unpack it to {root / task.folder}, and use --root {root}"
        )
    return folder


def read_task(task: Task, root: Path, *, partial: bool = False) -> list[LabeledImage]:
    """Return the images of a data set with their MOS (higher is better), in the order of its labels.

    Raises UserError, in one line, for an absent label file, one of another form, labels that are not on the declared
    scale or have the wrong direction, a repeated image, a wrong score of the known image, no rows, and, unless
    ``partial``, a number of images other than the set's. It does not check that the images exist.
    """
    folder = archive_of(task, root)
    try:
        rows = [task.fields.row(cells, task.column) for cells in task.read(folder, task.files)]
    except (OSError, KeyError, ValueError, IndexError, TypeError) as error:
        raise UserError(
            f"{task.name}: {' or '.join(task.files)} in {folder} does not have the documented format "
            f"({type(error).__name__}: {error}); replace it with the official file"
        ) from error
    _refuse_other_scale(task, rows)
    rated = [row for row in rows if not row.pristine]
    if not rated:
        raise UserError(f"{task.name}: no labeled images found in {folder}; download {task.source}")
    _refuse_repeated(task, rated)
    _refuse_other_score(task, rated)
    if len(rated) != task.count and not partial:
        raise UserError(
            f"{task.name}: {', '.join(task.files)} in {folder} lists {len(rated):,} of {task.count:,} images; get the "
            "official file, or add --partial to use these images"
        )
    return [_labeled(task, folder, row) for row in rated]


def other_files(task: Task, root: Path) -> str | None:
    """Return one line about label files that differ from the official ones by hash, or ``None``."""
    folder = archive_of(task, root)
    present = {name: (folder / name).read_bytes() for name in task.sha256 if (folder / name).is_file()}
    digests = {name: hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() for name, content in present.items()}
    other = [name for name, digest in digests.items() if digest != task.sha256[name]]
    if not other:
        return None
    return (
        f"{', '.join(other)} of {task.name} differs from the official file (SHA-256 {digests[other[0]][:12]}...). If "
        "you did not change it, download it again"
    )


def missing_files(labels: Sequence[LabeledImage]) -> list[Path]:
    """Return the images and references that are not on disk."""
    wanted = dict.fromkeys(file for label in labels for file in (label.image, label.reference) if file)
    return [file for file in wanted if not file.is_file()]


def refuse_missing_files(task: Task, labels: Sequence[LabeledImage]) -> None:
    """Raise UserError, naming the first three, if images or references are not on disk."""
    if missing := missing_files(labels):
        examples = ", ".join(map(str, missing[:MISSING_SHOWN]))
        raise UserError(
            f"{task.name}: {len(missing)} files are missing, such as {examples}; download {task.source}, or add "
            "--partial to skip their rows"
        )


def labels_sha256(labels: Sequence[LabeledImage]) -> str:
    """Return the SHA-256, in hex, of the rows as read; it does not depend on the folder."""
    digest = hashlib.sha256()
    for label in labels:
        fields = tuple(getattr(label, name) for name in IDENTIFYING)
        more = tuple(value for value in (label.generator, label.raters) if value)
        digest.update(f"{fields + more!r}\n".encode())
    return digest.hexdigest()


def _labeled(task: Task, folder: Path, row: Rated) -> LabeledImage:
    low, high = task.scale
    return LabeledImage(
        name=row.image,
        image=folder / row.image,
        reference=folder / row.reference if row.reference else None,
        mos=low + high - row.score if task.lower_is_better else row.score,
        mos_std=row.std,
        distortion=row.distortion,
        level=row.level,
        split=row.split,
        generator=row.generator,
        source=None,
        content=row.content,
    )


def _refuse_repeated(task: Task, rows: Sequence[Rated]) -> None:
    counts = Counter((row.image, row.reference) for row in rows)
    if repeated := [image for (image, _), count in counts.items() if count > 1]:
        raise UserError(
            f"{task.name}: {len(repeated)} images are listed twice in {', '.join(task.files)}, such as "
            f"{repeated[0]}; use the official file"
        )


def _refuse_other_score(task: Task, rows: Sequence[Rated]) -> None:
    """Raise UserError if the known image has another score: the table is mirrored, rescaled or of another set."""
    if task.known is None:
        return
    name, official = task.known
    tolerance = 0.005 * (task.scale[1] - task.scale[0])  # tables are rounded differently
    for row in rows:
        if f"/{row.image}".lower().endswith(f"/{name}") and abs(row.score - official) > tolerance:
            raise UserError(
                f"{task.name}: {task.column} of {row.image} is {row.score:g}, but {official:g} in the official table; "
                "use the official table"
            )


def _refuse_other_scale(task: Task, rows: Sequence[Rated]) -> None:
    low, high = task.scale
    beyond = [row.score for row in rows if not (row.pristine or low <= row.score <= high)]  # NaN is beyond, too
    if beyond:
        raise UserError(
            f"{task.name}: {len(beyond)} values of {task.column}, such as {beyond[0]:g}, are not between {low:g} and "
            f"{high:g}; use the official table"
        )
    scores = [row.score for row in rows if not row.pristine]
    if scores and max(scores) - min(scores) < LEAST_SPAN * (high - low):
        raise UserError(
            f"{task.name}: {task.column} spans only {min(scores):g} to {max(scores):g} of its scale from {low:g} to "
            f"{high:g}; use the official table"
        )
    for good, bad, what in _better_and_worse(rows):
        if (fmean(good) > fmean(bad)) == task.lower_is_better and fmean(good) != fmean(bad):
            raise UserError(
                f"{task.name}: column {task.column} should be '{task.direction}', but {what} have a mean of "
                f"{fmean(good):.4g} and all others {fmean(bad):.4g}, so it may be inverted; use the official table"
            )


def _better_and_worse(rows: Sequence[Rated]) -> Iterator[tuple[list[float], list[float], str]]:
    """Yield the scores of better images, the scores of worse images, and a description of the better ones."""
    pristine = [row.score for row in rows if row.pristine]
    damaged = [row.score for row in rows if not row.pristine]
    if pristine and damaged:
        yield pristine, damaged, "the undamaged images"
    strengths = [(float(row.level), row.score) for row in rows if row.level is not None]
    if strengths and min(strengths)[0] < max(strengths)[0]:
        least, most = min(strengths)[0], max(strengths)[0]
        yield (
            [score for strength, score in strengths if strength == least],
            [score for strength, score in strengths if strength == most],
            "the least damaged images",
        )
