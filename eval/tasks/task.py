"""Declare the properties of a data set, and read its rows as ``LabeledImage``, checked against them."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Literal

from agenticiqa.eval.datasets import LEAST_SPAN, MISSING_SHOWN, LabeledImage
from agenticiqa.programs.errors import UserError

Kind = Literal["full-reference", "no-reference", "AI-generated"]


@dataclass(frozen=True)
class Rated:
    """A row of an archive: paths relative to its folder, ``score`` (and its ``std``) as in its label table.

    ``content`` is the scene. ``level`` grows with the damage, ``generator`` made the image. A ``pristine`` row is an
    undamaged copy: it shows which end of the scale is good, and is not evaluated.
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
class Task:
    """A data set: how to read its archive, and which properties its labels must have.

    ``folder`` is the archive's own top folder and ``files`` the label files below it. ``scale`` holds the ends of the
    label column; if ``lower_is_better``, opinions are mirrored in the scale to get MOS. ``count`` is the number of
    images of the whole set. ``shows_direction``: levels, undamaged copies or votes in the archive show which end is
    good, and are checked when it is read; otherwise the direction is only declared. ``source`` says what to download
    from whom. ``known`` is the end of an image's path, in lower case, with its opinion in the official table.
    ``sha256`` has the official label files' hashes (line ends as LF) by path, as far as the authors' own repositories
    provide them.
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
    read: Callable[[Path], Iterable[Rated]]
    shows_direction: bool = False
    known: tuple[str, float] | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def direction(self) -> str:
        """Which end of the label column is good, in words."""
        return "lower is better" if self.lower_is_better else "higher is better"

    @property
    def direction_check(self) -> str:
        """Return whether the archive itself shows the direction, in words."""
        return "the direction is checked" if self.shows_direction else "the direction is as declared, nothing shows it"

    @property
    def scale_text(self) -> str:
        """Return the ends of the label column, as ``1..5``."""
        return "..".join(f"{end:g}" for end in self.scale)


def archive_of(task: Task, root: Path) -> Path:
    """Return the archive's folder: ``root`` or the folder of its name below. Raises UserError for missing files."""
    folder = root / task.folder if (root / task.folder).is_dir() else root
    absent = [name for name in task.files if not (folder / name).exists()]
    if absent:
        raise UserError(
            f"{task.name}: {', '.join(absent)} not found in {root} or {root / task.folder}; get {task.source}, unpack "
            f"it to {root / task.folder}, and name its parent with --root"
        )
    return folder


def read_task(task: Task, root: Path, *, partial: bool = False) -> list[LabeledImage]:
    """Return the images of a data set with their MOS (higher is better), in the order of its labels.

    Raises UserError, in one line, for an absent label file, one of another form, labels that are not on the declared
    scale or have the wrong direction, a repeated image, a wrong opinion of the known image, no rows, and, unless
    ``partial``, a number of images other than the set's. It does not check that the images exist.
    """
    folder = archive_of(task, root)
    try:
        rows = list(task.read(folder))
    except (OSError, KeyError, ValueError, IndexError, TypeError) as error:
        raise UserError(
            f"{task.name}: {' or '.join(task.files)} in {folder} is not what its readme describes "
            f"({type(error).__name__}: {error}); compare it with the sample at the head of its reader"
        ) from error
    _refuse_other_scale(task, rows)
    rated = [row for row in rows if not row.pristine]
    if not rated:
        raise UserError(f"{task.name}: there are no labeled images in {folder}")
    _refuse_repeated(task, rated)
    _refuse_other_score(task, rated)
    if len(rated) != task.count and not partial:
        raise UserError(
            f"{task.name} has {task.count:,} images, and {', '.join(task.files)} of {folder} {len(rated):,}: not all "
            "of it, or another set's table; add --partial if a part is meant"
        )
    return [_labeled(task, folder, row) for row in rated]


def of_split(task: Task, labels: Sequence[LabeledImage], split: str | None) -> list[LabeledImage]:
    """Return the images of a split, or all for ``None``. Raises UserError, with the known splits, for an empty one."""
    chosen = [label for label in labels if split in (None, label.split)]
    if not chosen:
        known = ", ".join(sorted({label.split for label in labels if label.split}))
        raise UserError(f"{task.name}: no row has split {split!r}; splits in it: {known or 'none'}")
    return chosen


def other_files(task: Task, root: Path) -> str | None:
    """Return one line about label files that differ from the official ones by hash, or ``None``."""
    folder = archive_of(task, root)
    there = {name: (folder / name).read_bytes() for name in task.sha256 if (folder / name).is_file()}
    found = {name: hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() for name, content in there.items()}
    other = [name for name, digest in found.items() if digest != task.sha256[name]]
    if not other:
        return None
    return f"{', '.join(other)} of {task.name} is not the official file (SHA-256 {found[other[0]][:12]}...)"


def missing_files(labels: Sequence[LabeledImage]) -> list[Path]:
    """Return the images and references that are not on disk."""
    wanted = dict.fromkeys(file for label in labels for file in (label.image, label.reference) if file)
    return [file for file in wanted if not file.is_file()]


def refuse_missing_files(task: Task, labels: Sequence[LabeledImage]) -> None:
    """Raise UserError, naming the first three, if images or references are not on disk."""
    if missing := missing_files(labels):
        shown = ", ".join(map(str, missing[:MISSING_SHOWN]))
        raise UserError(
            f"{task.name}: {len(missing)} files are missing, such as {shown}; get {task.source}, or add "
            "--partial to leave their rows out"
        )


def labels_sha256(labels: Sequence[LabeledImage]) -> str:
    """SHA-256, in hex, of the rows as they were read; it does not depend on the place on disk."""
    digest = hashlib.sha256()
    for label in labels:
        fields: tuple[str | float | None, ...] = (
            label.name,
            label.mos,
            label.mos_std,
            label.content,
            label.distortion,
            label.level,
            label.split,
        )
        fields += (label.generator,) if label.generator else ()
        fields += (label.raters,) if label.raters else ()
        digest.update(f"{fields!r}\n".encode())
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
            f"{task.name}: {len(repeated)} images stand twice in {', '.join(task.files)}, such as {repeated[0]}"
        )


def _refuse_other_score(task: Task, rows: Sequence[Rated]) -> None:
    """Raise UserError if the known image has another opinion: the table is mirrored, rescaled or of another set."""
    if task.known is None:
        return
    name, official = task.known
    tolerance = 0.005 * (task.scale[1] - task.scale[0])  # tables are rounded differently
    for row in rows:
        if f"/{row.image}".lower().endswith(f"/{name}") and abs(row.score - official) > tolerance:
            raise UserError(
                f"{task.name}: {task.column} of {row.image} is {official:g} in the official table, and {row.score:g} "
                "here; this is another label table"
            )


def _refuse_other_scale(task: Task, rows: Sequence[Rated]) -> None:
    low, high = task.scale
    beyond = [row.score for row in rows if not (row.pristine or low <= row.score <= high)]  # NaN is beyond, too
    if beyond:
        raise UserError(
            f"{task.name}: {task.column} runs from {low:g} to {high:g} and {len(beyond)} labels do not, such as "
            f"{beyond[0]:g}; this is another label table"
        )
    scores = [row.score for row in rows if not row.pristine]
    if scores and max(scores) - min(scores) < LEAST_SPAN * (high - low):
        raise UserError(
            f"{task.name}: {task.column} runs from {low:g} to {high:g} and these labels only from {min(scores):g} to "
            f"{max(scores):g}; this is another label table"
        )
    for good, bad, what in _better_and_worse(rows):
        if (fmean(good) > fmean(bad)) == task.lower_is_better and fmean(good) != fmean(bad):
            raise UserError(
                f"{task.name}: {task.column} is declared as {task.direction}, but {what} has {fmean(good):.4g} on "
                f"average and the rest {fmean(bad):.4g}; this is another label table"
            )


def _better_and_worse(rows: Sequence[Rated]) -> Iterator[tuple[list[float], list[float], str]]:
    """Yield opinions of better images, opinions of worse ones, and a description of the better ones."""
    pristine = [row.score for row in rows if row.pristine]
    damaged = [row.score for row in rows if not row.pristine]
    if pristine and damaged:
        yield pristine, damaged, "what is undamaged"
    levels = [(float(row.level), row.score) for row in rows if row.level is not None]
    if levels and min(levels)[0] < max(levels)[0]:
        least, most = min(levels)[0], max(levels)[0]
        yield (
            [o for level, o in levels if level == least],
            [o for level, o in levels if level == most],
            "the least damage",
        )
