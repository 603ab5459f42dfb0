"""Read labeled images: a ``labels.csv`` beside its images, one row per image with its mean opinion score (MOS).

Other uses of labels share its scale of the scores, its choice of a split, and its folds by scene.
"""

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.batch.csv_table import with_decimal_point
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.named_files import NamedFiles
from agenticiqa.programs.images.sources import shown_name
from agenticiqa.signatures.vocabulary import LEVELS

logger = logging.getLogger(__name__)

MISSING_SHOWN = 3
USUAL_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 100.0))
OTHER_SCALES = ((0.0, 5.0), (1.0, 7.0), (1.0, 9.0), (1.0, 10.0), (0.0, 10.0), (1.0, 100.0))
LEVEL_SCORES = {level.lower(): str(score) for level, score in LEVELS.items()}  # levels of ITU-R BT.500 and P.910
ABSENT = ("", "nan", "none", "null", "na", "n/a", "<na>")  # cells of images that a metric gave no score
LARGEST_SCORE = 1e100  # by magnitude: the squares of larger numbers overflow
LEAST_SPAN = 0.25  # share of the scale that the labels of every public set span; labels on 1..5 span less of 0..100

Row = Mapping[str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class LabeledImage:
    """One image with its mean opinion score (MOS).

    Attributes:
        name: The image's path as written in the file, so it stays the same if the folder moves.
        image: The path of the image.
        reference: The path of the pristine image, or ``None``.
        mos: The MOS on the data set's own scale, higher is better.
        mos_std: Its standard deviation, on the same scale.
        distortion: The kind of distortion.
        level: The strength of the distortion.
        split: The split that the image belongs to, such as "test".
        source: Where the image comes from.
        content: The scene, by default the file name of the reference or of the image. Images of one scene are not
            independent, so they are resampled together and never split between training and test.
        generator: The model that made an AI-generated image.
        raters: The number of people who rated the image.
        scores: Scores of metrics from further columns of its table, by column.
    """

    name: str
    image: Path
    reference: Path | None
    mos: float
    mos_std: float | None
    distortion: str | None
    level: str | None
    split: str | None
    source: str | None
    content: str
    generator: str | None = None
    raters: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        image: str | os.PathLike[str],
        mos: float,
        *,
        reference: str | os.PathLike[str] | None = None,
        content: str | None = None,
    ) -> "LabeledImage":
        """Return a labeled image without a labels file.

        Args:
            image: The path of the image.
            mos: Its MOS, higher is better.
            reference: The path of the pristine image.
            content: The scene; the default is the same as for a file.

        Returns:
            The labeled image.
        """
        path, pristine = Path(image), None if reference is None else Path(reference)
        scene = content or (pristine or path).name
        return cls(str(path), path, pristine, mos, None, None, None, None, None, scene)


@dataclass(frozen=True)
class MosScale:
    """The MOS scale of a data set: ``low`` is the score that corresponds to 1 (bad), ``high`` to 5 (excellent).

    Raises UserError unless low < high: in a ``labels.csv`` higher is better.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UserError(f"the MOS scale is {self.low:g} to {self.high:g}: give the lower end first")

    def to_1_5(self, mos: float) -> float:
        """Map ``mos`` linearly to 1..5; a score beyond an end counts as that end."""
        share = (mos - self.low) / (self.high - self.low)
        return 1.0 + 4.0 * min(1.0, max(0.0, share))


def mos_scale(mos: Sequence[float], ends: Sequence[float] | None = None) -> MosScale:
    """Return the scale with the given ends, or else the first of 0..1, 1..5 and 0..100 that holds all scores.

    Raises UserError if none of them does, or if the scores span less than a quarter of it, because they may then be on
    another scale.
    """
    if ends is not None:
        return MosScale(*ends)
    lowest, highest = min(mos), max(mos)
    usual = next((ends for ends in USUAL_SCALES if ends[0] <= lowest and highest <= ends[1]), None)
    if usual is None:
        raise UserError(
            f"scores from {lowest:g} to {highest:g} fit none of the scales 0..1, 1..5 and 0..100: "
            "give the ends of the scale with --mos-range LOW HIGH"
        )
    if highest - lowest < LEAST_SPAN * (usual[1] - usual[0]):
        filled = [
            (low, high)
            for low, high in OTHER_SCALES
            if low <= lowest and highest <= high and highest - lowest >= LEAST_SPAN * (high - low)
        ]
        fitting = [f"{low:g} {high:g}" for low, high in filled or [usual]]
        raise UserError(
            f"scores from {lowest:g} to {highest:g} span less than a quarter of {usual[0]:g}..{usual[1]:g} and may be "
            f"on another scale: give its ends with --mos-range, such as {' or '.join(fitting)}"
        )
    return MosScale(*usual)


def folds_by_content(contents: Sequence[str], folds: int, seed: int = 0, *, dealt: bool = False) -> NDArray[np.intp]:
    """Return the fold of each image, 0 to folds - 1; images of one scene share a fold. Few scenes make fewer folds.

    A scene's fold is the remainder of its place in a seeded shuffle; if ``dealt``, the shuffled scenes are dealt to the
    folds in turn. Both are equally random, but published figures can be repeated only with the original method.
    """
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    place = np.random.default_rng(seed).permutation(len(names))
    if dealt:
        place = np.argsort(place)
    return (place % max(1, min(folds, len(names))))[content_of]


def levels_as_scores(title: str, placed: Sequence[tuple[str, Row]]) -> Sequence[tuple[str, Row]]:
    """Return the rows with level names in MOS replaced by 1 (bad) to 5 (excellent).

    Raises UserError if some rows have a name and others a number.
    """
    scores = {place: score for place, row in placed if (score := LEVEL_SCORES.get(row.get("mos", "").lower()))}
    if not scores:
        return placed
    if other := next((place for place, _ in placed if place not in scores), None):
        raise UserError(
            f"{title}: {other}: mos is {dict(placed)[other].get('mos', '')!r}, but {next(iter(scores))} has a level; "
            f"use only levels ({', '.join(LEVEL_SCORES)}) or only numbers"
        )
    return [(place, {**row, "mos": scores[place]}) for place, row in placed]


def chosen_split(title: str, rows: Sequence[T], split: str | None, split_of: Callable[[T], str | None]) -> Sequence[T]:
    """Return the rows of a split, or all for ``None``. Raises UserError, with the known splits, for an empty split."""
    chosen = [row for row in rows if split in (None, split_of(row))]
    if not chosen:
        known = sorted({name for row in rows if (name := split_of(row))})
        raise UserError(f"{title}: no row has split {split!r}; splits found: {', '.join(known) or 'none'}")
    return chosen


def archive_root(name: str, folder: str, source: str, root: Path | None) -> Path:
    """Return ``root``, the folder of an archive. Raises UserError, with the download, if the user named no folder."""
    if root is None:
        raise UserError(f"{name}: add --root DIR, the folder that contains {folder} (download: {source})")
    return root


def labeled(files: NamedFiles, place: str, row: Row) -> LabeledImage:
    """Return a row, given without its empty cells, as a labeled image.

    Raises UserError, with the title and ``place``, for an absent image and for a score that is no finite number.
    """
    title = files.title
    if "image" not in row:
        raise UserError(f"{title}: {place}: the column image is empty; add a path, or remove the row")
    image = files.find(row["image"])
    reference = files.find(row["reference"]) if "reference" in row else None
    return LabeledImage(
        name=row["image"],
        image=image,
        reference=reference,
        mos=number_of(title, place, "mos", row.get("mos", "")),
        mos_std=number_of(title, place, "mos_std", row["mos_std"]) if "mos_std" in row else None,
        distortion=row.get("distortion"),
        level=row.get("level"),
        split=row.get("split"),
        source=row.get("source"),
        content=row.get("content") or (reference or image).name,
        generator=row.get("generator"),
        raters=number_of(title, place, "raters", row["raters"]) if "raters" in row else None,
    )


def refuse_unusable(files: NamedFiles, labels: Sequence[LabeledImage], places: Sequence[str]) -> None:
    """Raise UserError, in one line, for a repeated image (with the same reference) and for missing files.

    Files that had to be searched for are logged.
    """
    title = files.title
    first: dict[tuple[Path, Path | None], str] = {}
    for label, place in zip(labels, places, strict=True):
        earlier = first.setdefault((label.image, label.reference), place)
        if earlier != place:
            raise UserError(
                f"{title}: {place}: {label.name} is already in {earlier}; remove one of the two rows, or if each row "
                "is one rating, add a column rater"
            )
    wanted = dict.fromkeys(file for label in labels for file in (label.image, label.reference) if file)
    missing = [file for file in wanted if not os.path.isfile(file)]
    if missing:
        examples = ", ".join(shown_name(str(file)) for file in missing[:MISSING_SHOWN])
        more = f" and {len(missing) - MISSING_SHOWN} more" if len(missing) > MISSING_SHOWN else ""
        references = {label.reference for label in labels} & {*missing}
        leave_out = ", or ignore the references with --reference-column none" if references else ""
        raise UserError(
            f"{title}: {len(missing)} of {len(wanted)} files are missing: {examples}{more}. Paths are relative to "
            f"{files.folder}; name the right folder with --root{leave_out}"
        )
    if note := files.note():
        logger.warning("%s: %s", title, note)


def contents_doubt(labels: Sequence[LabeledImage]) -> str | None:
    """Return a one-line warning if ``content`` comes from file names that are unlikely to be scenes, else ``None``.

    Images without reference and content cause it in two cases: they have several distortions or strengths, so they are
    copies of scenes (a single name such as "authentic" does not count), or two folders share file names.
    """
    by_name = [label for label in labels if label.reference is None and label.content == label.image.name]
    paths: dict[str, Path] = {}
    same_name = next((x for x in by_name if paths.setdefault(x.content, x.image) != x.image), None)
    if same_name:
        why = f"{paths[same_name.content]} and {same_name.image} are treated as one scene"
    elif len({(label.distortion, label.level) for label in by_name if label.distortion}) > 1:
        why = f"each of {len(by_name)} distorted images is treated as a separate scene"
    else:
        return None
    return f"no column content (the scene of an image) or reference, so {why}; add one of them for correct intervals"


def score_of(title: str, place: str, column: str, cell: str) -> float | None:
    """Return a cell as a finite number, ``None`` if it is empty or NaN. Raises UserError as ``number_of`` does."""
    return None if cell.strip().lower() in ABSENT else number_of(title, place, column, cell)


def number_of(title: str, place: str, column: str, cell: str) -> float:
    """Return a cell as a number up to 1e100. Raises UserError, with ``title`` and ``place``, for anything else."""
    try:
        value = float(with_decimal_point(cell.strip()))
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_SCORE:
        levels = f" or a level ({', '.join(LEVEL_SCORES)})" if column == "mos" else ""
        raise UserError(f"{title}: {place}: {column} is {cell!r}, expected a number{levels}")
    return value
