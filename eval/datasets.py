"""Labelled images: a ``labels.csv`` beside its images, one row per image with its mean opinion score."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenticiqa.programs.errors import UserError

SHOWN = 3


@dataclass(frozen=True)
class Labelled:
    """One image and what observers said of it.

    ``mos`` is on the data set's own scale, higher is better; ``mos_std`` is on the same scale. ``content`` is the
    scene: the file name of the reference, or of the image where there is none. Images of one content are not
    independent, so they are resampled together and never divided between training and test. ``name`` is the image as
    the file spells it, which stays the same when the folder moves.
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


def read_labels(path: str | Path, split: str | None = None) -> list[Labelled]:
    """Read a ``labels.csv``, all of it or one split, in its order.

    Columns: image, reference, mos, mos_std, distortion, level, split, source; only image and mos have to be there,
    other columns are ignored. Paths are relative to the file. Raises UserError, in one line, for a missing file or
    column, a number that is none (with its line), a row that stands there twice, missing images, and no rows.
    """
    path = Path(path)
    numbered = _rows(path)
    if not numbered:
        raise UserError(f"{path}: expected at least one labelled image, found only a header; add rows")
    if split is not None:
        known = sorted({row["split"] for _, row in numbered if row.get("split")})
        numbered = [(line, row) for line, row in numbered if row.get("split") == split]
        if not numbered:
            raise UserError(f"{path}: no row has split {split!r}; splits in it: {', '.join(known) or 'none'}")
    labels = [_labelled(path, line, row) for line, row in numbered]
    _refuse_repeated(path, labels, [line for line, _ in numbered])
    _refuse_missing(path, labels)
    return labels


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Every row with its line number, cells stripped, absent cells left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = [name.strip() for name in reader.fieldnames or ()]
            lacking = [name for name in ("image", "mos") if name not in columns]
            if lacking:
                raise UserError(
                    f"{path}: expected the columns image and mos, found {', '.join(columns) or 'an empty file'}; "
                    f"add {' and '.join(lacking)}"
                )
            reader.fieldnames = columns
            return [(reader.line_num, dict(_filled(row))) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{path}: expected a labels file (CSV, UTF-8), but it cannot be read: {why}") from error


def _filled(row: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, cell in row.items():
        if isinstance(name, str) and isinstance(cell, str) and cell.strip():
            yield name, cell.strip()


def _labelled(path: Path, line: int, row: dict[str, str]) -> Labelled:
    if "image" not in row:
        raise UserError(f"{path}: line {line}: the cell of image is empty")
    image = path.parent / row["image"]
    reference = path.parent / row["reference"] if "reference" in row else None
    mos = _number(path, line, "mos", row.get("mos", ""))
    return Labelled(
        name=row["image"],
        image=image,
        reference=reference,
        mos=mos,
        mos_std=_number(path, line, "mos_std", row["mos_std"]) if "mos_std" in row else None,
        distortion=row.get("distortion"),
        level=row.get("level"),
        split=row.get("split"),
        source=row.get("source"),
        content=(reference or image).name,
    )


def _number(path: Path, line: int, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{path}: line {line}: {column} is {cell!r}, expected a number")
    return value


def _refuse_repeated(path: Path, labels: Sequence[Labelled], lines: Sequence[int]) -> None:
    first: dict[tuple[Path, Path | None], int] = {}
    for label, line in zip(labels, lines, strict=True):
        earlier = first.setdefault((label.image, label.reference), line)
        if earlier != line:
            raise UserError(
                f"{path}: line {line}: {label.image.name} stands in line {earlier} already; keep one of them"
            )


def _refuse_missing(path: Path, labels: Sequence[Labelled]) -> None:
    wanted = dict.fromkeys(file for label in labels for file in (label.image, label.reference) if file)
    missing = [file for file in wanted if not file.is_file()]
    if missing:
        shown = ", ".join(str(file) for file in missing[:SHOWN])
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise UserError(f"{path}: {len(missing)} of {len(wanted)} files are missing: {shown}{more}")
