"""Labels of one's own in any form as ``LabeledImage``, checked; columns go by their usual names or those given."""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenticiqa.eval.datasets import (
    LabeledImage,
    MosScale,
    chosen_split,
    labeled,
    mos_scale,
    number_of,
    refuse_unusable,
)
from agenticiqa.eval.labels.embedded import file_of
from agenticiqa.eval.labels.sources import Cells, Source
from agenticiqa.programs.errors import UserError

logger = logging.getLogger(__name__)

IMAGE = (
    *("image", "img", "image_path", "img_path", "image_name", "file_name", "filename"),
    *("dist_img", "dist_image", "distorted", "distorted_image", "dist_img_path", "dist_path", "dist_name"),
)
REFERENCE = (
    *("reference", "ref", "ref_img", "ref_image", "ref_img_path", "ref_image_path", "ref_path", "ref_name", "ref_file"),
    *("reference_image", "reference_img", "reference_path", "reference_name", "pristine", "pristine_image"),
    *("pristine_path", "original", "original_image"),
)
MOS = ("mos", "score", "mean_opinion_score")
DMOS = "dmos"
REFERENCE_COLUMN = "the column of reference"  # in a row, beside the cells
OTHERS = ("mos_std", "distortion", "level", "split", "source", "content", "generator")
# Names of columns that are not read, but look like one that would be.
LOOKS_LIKE = {
    "reference": re.compile(r"(^|[^a-z])(ref|orig|pristine|gt|ground.?truth|clean)", re.I),
    "split": re.compile(r"(^|[^a-z])(split|subset|fold|partition|is_?(train|test))|^set$", re.I),
    "level": re.compile(r"(^|[^a-z])(level|severity|strength|intensity)", re.I),
    "distortion": re.compile(r"(^|[^a-z])(dist(ortion)?_?type|degradation)", re.I),
}
DECLARE = "add --lower-is-better if more damage scores higher, or --no-lower-is-better if not"


@dataclass(frozen=True)
class Declared:
    """What is said of labels beside them: the columns of image and score, the direction and the ends of the scale.

    ``lower_is_better`` is ``None`` where nothing is said, and then higher is better.
    """

    image: str | None = None
    mos: str | None = None
    lower_is_better: bool | None = None
    mos_range: tuple[float, float] | None = None


def columns_of(title: str, found: Collection[str], declared: Declared) -> Mapping[str, str]:
    """The column for each of image, mos and what else there is of ``OTHERS``, whatever the case of its letters.

    Raises UserError, with the columns found, where image or mos has none, and for a column dmos, which runs either way
    (KADID-10k's is higher for better images), without a declared direction.
    """
    by_lower_case = {name.lower(): name for name in reversed(list(found))}
    columns = {name: by_lower_case[name] for name in OTHERS if name in by_lower_case}
    for wanted, names, given in (
        ("image", IMAGE, declared.image),
        ("mos", (*MOS, DMOS), declared.mos),
        ("reference", REFERENCE, None),
    ):
        if given is not None and given not in found:
            raise UserError(f"{title}: there is no column {given!r}; columns in it: {', '.join(found)}")
        name = given or next((by_lower_case[name] for name in names if name in by_lower_case), None)
        if name is not None:
            columns[wanted] = name
    absent = [name for name in ("image", "mos") if name not in columns]
    if absent:
        raise UserError(
            f"{title}: expected the columns image and mos, found {', '.join(found) or 'an empty file'}; add "
            f"{' and '.join(absent)}, or name the column with {' and '.join(f'--{name}-column' for name in absent)}"
        )
    if columns["mos"].lower() == DMOS and declared.lower_is_better is None:
        raise UserError(f"{title}: a column {columns['mos']} runs either way: {DECLARE}")
    return columns


def unread(found: Collection[str], columns: Mapping[str, str]) -> list[str]:
    """A sentence for each column that is not read although it looks like a score, a reference, a split or a level."""
    rest = [name for name in found if name not in columns.values()]
    said = [
        f"column {name} is not read; if it is the {role}, name it {role}"
        for role, pattern in LOOKS_LIKE.items()
        for name in rest
        if role not in columns and pattern.search(name)
    ]
    scores = [name for name in rest if name.lower() in (*MOS, DMOS) or name.lower().startswith("mos.")]
    if scores:
        said.append(f"column {columns['mos']} is used for the scores, not {', '.join(scores)} (--mos-column)")
    return said


def text_of(cell: Any) -> str:
    """A cell as text, empty for an absent one."""
    return "" if cell is None else str(cell).strip()


def read_own(source: Source, declared: Declared, split: str | None = None) -> list[LabeledImage]:
    """The labeled images of a source, all or of one split, in its order, with their MOS, higher is better.

    Labels that are declared as lower is better become their mirror image in the scale: ``mos_range``, or the usual one
    that holds all of them, of any split. Embedded images are written to the cache folder. Raises UserError, in one
    line, as ``read_labels`` does, and for scores beyond ``mos_range``.
    """
    rows = [(place, row) for place, row in _named(source, declared, split) if row]
    if not rows:
        raise UserError(f"{source.title}: expected at least one labeled image, found none; add rows")
    chosen = _with_files_there(source, chosen_split(source.title, rows, split))
    labels = [
        replace(labeled(source.title, source.folder, place, row), name=row.get("name") or place)
        for place, row in chosen
    ]
    refuse_unusable(source.title, labels, [place for place, _ in chosen])
    if declared.mos_range is None and not declared.lower_is_better:
        return labels
    scale = _scale(source.title, rows, declared)
    return [replace(x, mos=scale.low + scale.high - x.mos) for x in labels] if declared.lower_is_better else labels


def _named(source: Source, declared: Declared, split: str | None) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row under the names of ``labels.csv``, without absent cells; of the split, also with its images' files."""
    columns: dict[tuple[str, ...], Mapping[str, str]] = {}  # by what the row has, which differs between JSON objects
    for place, cells in source.rows:
        found = tuple(filter(None, cells))
        if found not in columns:
            columns[found] = columns_of(source.title, found, declared)
            for sentence in unread(found, columns[found]):
                logger.warning("%s: %s", source.title, sentence)
        named = {name: cells.get(column) for name, column in columns[found].items()}
        row = {name: text for name in ("mos", *OTHERS) if (text := text_of(named.get(name)))}
        if split is None or row.get("split") == split:
            row |= _files(f"{source.title}: {place}", named)
            row |= {REFERENCE_COLUMN: columns[found]["reference"]} if "reference" in row else {}
        yield place, row


def _with_files_there(
    source: Source, rows: Sequence[tuple[str, Mapping[str, str]]]
) -> list[tuple[str, Mapping[str, str]]]:
    """The rows, without references where a column that is only like them ("ref_name") names not a single file."""
    named = {row["reference"]: row[REFERENCE_COLUMN] for _, row in rows if "reference" in row}
    column = next(iter(named.values()), "reference")
    if column.lower() == "reference" or any((source.folder / name).is_file() for name in named):
        return list(rows)
    logger.warning(
        "%s: column %s is not used: no file is where it says, such as %s", source.title, column, next(iter(named))
    )
    return [(place, {name: text for name, text in row.items() if name != "reference"}) for place, row in rows]


def _files(where: str, cells: Cells) -> Iterator[tuple[str, str]]:
    for name in ("image", "reference"):
        if text_of(cells.get(name)):
            path, known_as = file_of(cells[name], where)
            yield name, path
            if name == "image":
                yield "name", known_as


def _scale(title: str, rows: Sequence[tuple[str, Mapping[str, str]]], declared: Declared) -> MosScale:
    scores = [number_of(title, place, "mos", row.get("mos", "")) for place, row in rows]
    scale = mos_scale(scores, declared.mos_range)
    beyond = [score for score in scores if not scale.low <= score <= scale.high]
    if beyond:
        ends = f"{scale.low:g} and {scale.high:g}"
        raise UserError(f"{title}: {len(beyond)} scores, such as {beyond[0]:g}, are beyond {ends}; correct --mos-range")
    return scale
