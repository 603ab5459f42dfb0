"""Read the user's own labels as ``LabeledImage`` and check them; columns have usual or declared names."""

import logging
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from agenticiqa.eval.datasets import (
    LabeledImage,
    MosScale,
    chosen_split,
    labeled,
    levels_as_scores,
    mos_scale,
    number_of,
    refuse_unusable,
    score_of,
)
from agenticiqa.eval.labels.embedded import file_of
from agenticiqa.eval.labels.raters import Panel, Placed, merged
from agenticiqa.eval.labels.sources import Cells, Source, open_rows, open_source
from agenticiqa.eval.names import plain
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import READ, SIGNATURE
from agenticiqa.programs.images.named_files import NamedFiles

logger = logging.getLogger(__name__)

# Names of columns, as ``plain`` writes them; the first one that exists is used.
IMAGE = (
    *("image", "img", "imagepath", "imgpath", "imagename", "imgname", "imagefile", "filename", "filepath", "file"),
    *("path", "distimg", "distimage", "distorted", "distortedimage", "distimgpath", "distpath", "distname"),
    *("degraded", "degradedimage", "lq", "lqimage", "lqpath"),
)
REFERENCE = re.compile(
    r"(img|image)?(ref|reference|pristine|orig|original|gt|groundtruth|hq|highquality|target|clean|undistorted|source(?!$))"
    r"(img|image)?(path|name|file|filename)?"
)
MOS = ("mos", "score", "meanopinionscore", "opinionscore", "opinion", "rating", "mosscore")
DMOS = "dmos"
NO_REFERENCE = "none"  # the value in place of a column name
REFERENCE_COLUMN = "reference column"  # key in a row for the name of that column
RATERS = (  # names of columns that hold raters if a table has several rows for an image
    *("raterid", "raterno", "worker", "workerid", "annotator", "annotatorid", "user", "userid", "observer"),
    *("observerid", "participant", "participantid", "subject", "subjectid", "evaluator", "evaluatorid"),
    *("assessor", "judge", "labeler", "labeller", "reviewer", "voter", "person", "expert", "prolificpid", "username"),
)
PERHAPS_RATER = "perhaps_rater"  # key in a row for the value of such a column
OTHERS = ("mos_std", "raters", "rater", "repeat", "distortion", "level", "split", "source", "content", "generator")
# Names of columns that are ignored, but look like one of the above.
LIKE_REFERENCE = re.compile(
    r"(^|[^a-z])(ref|orig|pristine|gt|ground.?truth|clean|hq|hr|target|source|undistorted|lossless)", re.I
)
LOOKS_LIKE = {
    "split": re.compile(r"(^|[^a-z])(split|subset|fold|partition|is_?(train|test))|^set$", re.I),
    "level": re.compile(r"(^|[^a-z])(level|severity|strength|intensity)", re.I),
    "distortion": re.compile(r"(^|[^a-z])(dist(ortion)?_?type|degradation)", re.I),
}
Paths = dict[str, str | None]  # the paths of images; None for an embedded image
DECLARE = "add --lower-is-better if low scores mean good quality, otherwise --no-lower-is-better"


@dataclass(frozen=True)
class Declared:
    """The user's declarations about labels: the columns, the direction and the ends of the scale.

    ``lower_is_better`` is ``None`` if undeclared; then higher is better. ``reference`` "none" ignores the
    references. ``keep_raters`` also uses the ratings of careless raters. ``scores`` are columns with scores of metrics.
    """

    image: str | None = None
    mos: str | None = None
    lower_is_better: bool | None = None
    mos_range: tuple[float, float] | None = None
    reference: str | None = None
    keep_raters: bool = False
    scores: tuple[str, ...] = ()


def columns_of(title: str, cells: Cells, declared: Declared) -> Mapping[str, str]:
    """Return the column for image, mos and each one of ``OTHERS`` that exists, in any spelling of the names.

    ``cells`` are those of the first row. Raises UserError, with the columns found, if image or mos has no column, and
    for a column dmos without a declared direction, as both are in use (KADID-10k's is higher for better images).
    """
    header = [name for name in cells if name]
    if not header:
        raise UserError(f"{title}: the file is empty; add a header with the columns image and mos, and rows")
    by_name = {plain(name): name for name in reversed(header)}
    columns = {name: by_name[plain(name)] for name in OTHERS if plain(name) in by_name}
    if "rater" not in columns and (raters := [by_name[name] for name in RATERS if name in by_name]):
        columns[PERHAPS_RATER] = raters[0]
    references = [name for name in header if REFERENCE.fullmatch(plain(name))]
    references.sort(key=lambda name: plain(name) != "reference")
    taken = (*references, columns.get("source"))
    alike = [name for name in header if LIKE_REFERENCE.search(name) and name not in taken]
    likely = [name for name in (*references, *alike) if is_like_image(cells[name])] or references
    for wanted, names, column in (
        ("image", [by_name[name] for name in IMAGE if name in by_name], declared.image),
        ("mos", [by_name[name] for name in (*MOS, DMOS) if name in by_name], declared.mos),
        ("reference", likely, declared.reference),
    ):
        if wanted == "reference" and column == NO_REFERENCE:
            continue
        if column is not None and column not in header:
            raise UserError(f"{title}: no column {column!r} found (columns: {', '.join(header)}); correct the name")
        if column or names:
            columns[wanted] = column or names[0]
    absent = [name for name in ("image", "mos") if name not in columns]
    if absent:
        hint = ". Separate the cells with commas, semicolons or tabs" if len(header) == 1 else ""
        it = "them" if len(absent) > 1 else "it"
        raise UserError(
            f"{title}: no {' and no '.join(absent)} column found (columns: {', '.join(header)}){hint}. "
            f"Add {it}, rename a column, or use {' and '.join(f'--{name}-column' for name in absent)}"
        )
    if unknown := [name for name in declared.scores if name not in header]:
        raise UserError(f"{title}: no column {unknown[0]!r} found (columns: {', '.join(header)}); correct the name")
    if columns["mos"].lower() == DMOS and declared.lower_is_better is None:
        raise UserError(f"{title}: the direction of column {columns['mos']} is unclear; {DECLARE}")
    return columns


def unread(header: Collection[str], columns: Mapping[str, str]) -> list[str]:
    """Return a sentence for each ignored column that looks like a score, a split, a strength or a distortion."""
    rest = [name for name in header if name not in columns.values()]
    notes = [
        f"column {name} is ignored; if it is the {role}, rename it to {role}"
        for role, pattern in LOOKS_LIKE.items()
        for name in rest
        if role not in columns and pattern.search(name)
    ]
    scores = [name for name in rest if plain(name) in (*MOS, DMOS) or name.lower().startswith("mos.")]
    if scores and "mos" in columns:
        notes.append(f"column {columns['mos']} has the scores; to use {' or '.join(scores)} instead, add --mos-column")
    return notes


def text_of(cell: Any) -> str:
    """Return a cell as text, which is empty for an absent cell."""
    return "" if cell is None else str(cell).strip()


def is_like_image(cell: Any) -> bool:
    """Return whether a cell is an image or the name of an image file."""
    if isinstance(cell, dict):
        return {"bytes", "path"} <= cell.keys()
    if isinstance(cell, bytes):
        return SIGNATURE.match(cell) is not None
    return bool(READ.fullmatch(PureWindowsPath(text_of(cell)).suffix.lower()))


def read_labels(path: str | os.PathLike[str] | Iterable[Any], split: str | None = None) -> list[LabeledImage]:
    """Read a ``labels.csv``, or another table or folder that ``labels.sources`` lists, in its order, all or one split.

    Columns: image, reference, mos, mos_std, distortion, level, split, source, content, generator, raters; only image
    and mos are required, other columns are ignored. With a column rater, each row is one rating, and the ratings of an
    image are merged into its MOS; repeat is 1 for the second rating by the same person.

    Args:
        path: The file or folder. Paths in it are relative to its folder, see ``NamedFiles``. Or a DataFrame, (image,
            mos) pairs or dicts, with paths relative to the working folder.
        split: The split to read; by default all.

    Returns:
        The labeled images.

    Raises:
        UserError: A file or column is missing, a cell is not a number (the message has its line), a row is repeated,
            images are missing, or there are no rows.
    """
    source = open_source(Path(path)) if isinstance(path, str | os.PathLike) else open_rows(path)
    return read_own(source, Declared(), split)[0]


def read_own(source: Source, declared: Declared, split: str | None = None) -> tuple[list[LabeledImage], Panel]:
    """Return the labeled images of a source, all or of one split, in its order, with their MOS, higher is better.

    With a column rater, ratings are merged into MOS, and their panel is also returned. Raters left out are logged.

    Labels declared as lower is better are mirrored in the scale: ``mos_range``, or the usual scale that holds the
    labels of all splits. Embedded images are written to the cache folder. Raises UserError,
    in one line, also for scores beyond ``mos_range``, and for another column of images that may be
    the references.
    """
    named = list(_named(source, declared, split))
    rows = [(row.place, row.texts) for row in named]
    if not rows:
        raise UserError(f"{source.title}: expected at least one labeled image, found none; add rows")
    scored = levels_as_scores(source.title, rows)
    if scored is not rows and (declared.lower_is_better or declared.mos_range not in (None, (1, 5))):
        raise UserError(
            f"{source.title}: mos has levels, from bad (1) to excellent (5): remove --mos-range and --lower-is-better"
        )
    files = NamedFiles(source.title, source.folder)
    of_split = chosen_split(source.title, scored, split, lambda placed: placed[1].get("split"))
    of_split = _with_raters(source.title, of_split)
    of_split, panel = merged(
        source.title, of_split, keep_all=declared.keep_raters, is_one_scale=declared.mos_range is not None
    )
    for rater in panel.left_out:
        why = f"the ratings of {rater.name} are not used: no clear agreement with others or oneself ({rater.figures})"
        logger.warning("%s: %s; to use them, add --keep-raters", source.title, why)
    chosen = _with_references(files, of_split, _by_column(named), declared)
    given = {row.place: row.scores for row in named}
    labels = [
        replace(
            labeled(files, place, row),
            name=row.get("name") or source.name_in(place),
            scores=_scores(source.title, place, given[place]),
        )
        for place, row in chosen
    ]
    refuse_unusable(files, labels, [place for place, _ in chosen])
    if declared.mos_range is None and not declared.lower_is_better:
        return labels, panel
    scale = _scale(source.title, scored, declared)
    if declared.lower_is_better:
        labels = [replace(x, mos=scale.low + scale.high - x.mos) for x in labels]
    return labels, panel


def _with_raters(title: str, rows: Sequence[Placed]) -> Sequence[Placed]:
    """Return the rows with the raters of a column with another name, if an image has several rows."""
    images = [(row.get("image"), row.get("reference")) for _, row in rows]
    if not any(PERHAPS_RATER in row for _, row in rows) or len({*images}) == len(images):
        return rows
    logger.warning(
        "%s: each of %d rows is taken for one rating of one of %d images; name the column rater to confirm it",
        title,
        len(rows),
        len({*images}),
    )
    renamed = {PERHAPS_RATER: "rater"}
    return [(place, {renamed.get(name, name): text for name, text in row.items()}) for place, row in rows]


class _Named(NamedTuple):
    """A row as texts under the column names of ``labels.csv``, without absent cells.

    ``others`` has the images in columns without a role, by column: the path, or ``None`` for an embedded image.
    ``scores`` are the cells with scores of metrics, by column.
    """

    place: str
    texts: dict[str, str]
    others: Paths
    scores: dict[str, str]


def _named(source: Source, declared: Declared, split: str | None) -> Iterator[_Named]:
    """Yield each row that is not blank; rows of other splits have no images."""
    columns_of_keys: dict[tuple[str, ...], Mapping[str, str]] = {}  # JSON objects have different keys
    for place, cells in source.rows:
        header = tuple(filter(None, cells))
        if header not in columns_of_keys:
            columns_of_keys[header] = columns_of(source.title, cells, declared)
            for sentence in unread([x for x in header if x not in declared.scores], columns_of_keys[header]):
                logger.warning("%s: %s", source.title, sentence)
        if all(cell is None or (isinstance(cell, str) and not cell) for cell in cells.values()):
            continue
        columns = columns_of_keys[header]
        values = {name: cells.get(column) for name, column in columns.items()}
        texts = {name: text for name in ("mos", PERHAPS_RATER, *OTHERS) if (text := text_of(values.get(name)))}
        scores = {column: text_of(cells[column]) for column in declared.scores}
        if split not in (None, texts.get("split")):
            yield _Named(place, texts, {}, scores)
            continue
        used = [column for name, column in columns.items() if name != "source"]
        likely = [column for column in header if column not in used and is_like_image(cells[column])]
        texts |= _files(values, f"{source.title}: {place}")
        if "reference" in texts:
            texts[REFERENCE_COLUMN] = columns["reference"]
        yield _Named(place, texts, {column: _path_of(cells[column]) for column in likely}, scores)


def _files(values: Cells, where: str) -> dict[str, str]:
    """Return the files of a row's image and reference, and the name of the image."""
    files: dict[str, str] = {}
    image, reference = values.get("image"), values.get("reference")
    if text_of(image):
        files["image"], files["name"] = file_of(image, where)
    if text_of(reference):
        cell = reference if isinstance(reference, dict | bytes) else text_of(reference)
        files["reference"], _ = file_of(cell, where)
    return files


def _by_column(rows: Iterable[_Named]) -> dict[str, Paths]:
    """Return the images in columns without a role, by column and place."""
    images: dict[str, Paths] = {}
    for row in rows:
        for column, path in row.others.items():
            images.setdefault(column, {})[row.place] = path
    return images


def _path_of(cell: Any) -> str | None:
    if isinstance(cell, dict):
        return cell.get("path") if cell.get("bytes") is None else None
    return text_of(cell) if isinstance(cell, str) else None


def _with_references(
    files: NamedFiles,
    rows: Sequence[tuple[str, Mapping[str, str]]],
    images: Mapping[str, Paths],
    declared: Declared,
) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Return the rows with references from a column recognized by its name or by its cells, which are other images.

    Raises UserError if it is unclear whether a column of images holds the references.
    """
    references = {row["reference"]: row[REFERENCE_COLUMN] for _, row in rows if "reference" in row}
    column = next(iter(references.values()), "")
    if declared.reference:
        return rows
    others = [other for other, paths in images.items() if _has_other_images(files, rows, paths)]
    if plain(column) == "reference" or any(is_like_image(x) or files.locate(x) for x in references):
        for other in filter(LIKE_REFERENCE.search, others):
            logger.warning("%s: references are in column %s, not %s (--reference-column)", files.title, column, other)
        return rows
    if column:
        logger.warning(
            "%s: column %s is ignored, as its cells, such as %s, are not images; name another with --reference-column",
            files.title,
            column,
            next(iter(references)),
        )
        rows = [(place, {name: text for name, text in row.items() if name != "reference"}) for place, row in rows]
    found = _likely_references(files.title, images, others)
    return [(place, {**row, "reference": found[place]} if place in found else row) for place, row in rows]


def _likely_references(title: str, images: Mapping[str, Paths], others: Sequence[str]) -> dict[str, str]:
    """Return the paths in the only one of ``others`` by place, if its name is like that of references.

    Raises UserError for several columns of images, and for one of another name or of embedded images.
    """
    if not others:
        return {}
    paths = images[others[0]]
    if len(others) > 1 or not LIKE_REFERENCE.search(others[0]) or None in paths.values():
        raise UserError(
            f"{title}: column {' and '.join(others)} has images, too. If they are the references, add "
            f"--reference-column {shlex.quote(others[0])}, otherwise --reference-column {NO_REFERENCE}. To assess "
            "them, use --image-column"
        )
    ignored = f"--reference-column {NO_REFERENCE}"
    logger.warning("%s: references are in column %s; to ignore them, add %s", title, others[0], ignored)
    return {place: path for place, path in paths.items() if path}


def _has_other_images(files: NamedFiles, rows: Sequence[tuple[str, Mapping[str, str]]], paths: Paths) -> bool:
    """Return whether a column's cell is an image, or names an existing file other than the image of its row."""
    for place, row in rows:
        if place in paths and "image" in row:
            own, path = files.find(row["image"]), paths[place]
            if path is None or ((file := files.locate(path)) and os.path.realpath(file) != os.path.realpath(own)):
                return True
    return False


def _scores(title: str, place: str, cells: Mapping[str, str]) -> dict[str, float]:
    """Return the scores in the cells of a row by column, without absent ones."""
    scores = {name: score_of(title, place, name, cell) for name, cell in cells.items()}
    return {name: score for name, score in scores.items() if score is not None}


def _scale(title: str, rows: Sequence[tuple[str, Mapping[str, str]]], declared: Declared) -> MosScale:
    scores = [number_of(title, place, "mos", row.get("mos", "")) for place, row in rows]
    scale = mos_scale(scores, declared.mos_range)
    beyond = [score for score in scores if not scale.low <= score <= scale.high]
    if beyond:
        ends = f"{scale.low:g} and {scale.high:g}"
        raise UserError(
            f"{title}: {len(beyond)} scores, such as {beyond[0]:g}, are not between {ends}; correct --mos-range"
        )
    return scale
