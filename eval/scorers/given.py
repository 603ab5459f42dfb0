"""Read scores that one already has, and join them to labeled images.

They are a column of the labels (``column:NAME``), a table of images and scores (``file:TABLE`` or
``file:TABLE:COLUMN``), or values in memory. A minus before the name of a column says that lower is better.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from agenticiqa.eval.datasets import LabeledImage, number_of, score_of
from agenticiqa.eval.labels.own_data import IMAGE, text_of
from agenticiqa.eval.labels.sources import Cells, open_source
from agenticiqa.eval.names import plain
from agenticiqa.eval.scorers.scorer import Scorer
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.names import folded

logger = logging.getLogger(__name__)

COLUMN, FILE = "column:", "file:"
LOWER = "-"  # before the name of a column
IN_MEMORY = "scores"  # the title of values in memory
OF_RESULTS = "quality_score"  # the column of scores in results of this program
EXAMPLES = 2
FILE_AND_FOLDER = 2  # parts of a path

Joined = Callable[[Sequence[LabeledImage]], Sequence[float | None]]


class Named(NamedTuple):
    """A score with the name of its image as its table has it."""

    image: str
    score: float | None


def columns_scored(scorers: Iterable[Any]) -> tuple[str, ...]:
    """Return the columns of the labels that scorers name."""
    names = [name.removeprefix(COLUMN) for name in scorers if isinstance(name, str) and name.startswith(COLUMN)]
    return tuple(dict.fromkeys(name.removeprefix(LOWER) for name in names))


def of_column(name: str, lower_is_better: bool | None) -> Scorer:
    """Return the scorer for a column of the labels."""
    column = name.removeprefix(LOWER)
    lower = bool(lower_is_better) or column != name
    return _given(column, lower, lambda labels: [label.scores.get(column) for label in labels])


def of_file(name: str, lower_is_better: bool | None) -> Scorer:
    """Return the scorer for a table of images and scores. Raises UserError if it cannot be read."""
    path, column = Path(name), None
    if not path.exists() and ":" in name:
        path, column = Path(name.rpartition(":")[0]), name.rpartition(":")[2]
    if not path.exists():
        raise UserError(f"{FILE}{name}: there is no such file; write file:TABLE, or file:TABLE:COLUMN")
    lower = bool(lower_is_better) or (column or "").startswith(LOWER)
    scores, column = _of_table(path, column and column.removeprefix(LOWER))
    title = path.stem if Path(name) == path else f"{path.stem}:{column}"
    return _given(title, lower, lambda labels: joined(path.name, scores, labels))


def in_memory(values: Any, name: str | None, lower_is_better: bool | None) -> Scorer | None:
    """Return the scorer for scores by image, or for one score per label in their order; ``None`` for other values.

    Scores by image are a mapping, or a Series of pandas with names of images as its index. ``name`` is by default that
    of a Series, or "scores".
    """
    name = name or str(getattr(values, "name", None) or IN_MEMORY)
    index = getattr(values, "index", None)
    if hasattr(values, "to_dict") and index is not None and all(isinstance(key, str) for key in index):
        values = values.to_dict()
    if isinstance(values, Mapping):
        scores = [Named(str(image), _number(f"{IN_MEMORY}: {image}", score)) for image, score in values.items()]
        return _given(name, bool(lower_is_better), lambda labels: joined(name, scores, labels))
    if hasattr(values, "to_list") or hasattr(values, "tolist"):
        values = values.to_list() if hasattr(values, "to_list") else values.tolist()
    if not isinstance(values, list | tuple):
        return None
    in_order = [_number(f"{IN_MEMORY}: row {number}", score) for number, score in enumerate(values, 1)]

    def of_labels(labels: Sequence[LabeledImage]) -> Sequence[float | None]:
        if len(in_order) != len(labels):
            raise UserError(
                f"{name}: {len(in_order)} scores for {len(labels)} labeled images: give one for each, in their order, "
                "or scores by image, as a dict"
            )
        return in_order

    return _given(name, bool(lower_is_better), of_labels)


def joined(title: str, scores: Sequence[Named], labels: Sequence[LabeledImage]) -> list[float | None]:
    """Return the score of each labeled image: that of the name with the most equal parts at the end of its path.

    Raises UserError if an image has several scores, and if one name fits several images equally well.
    """
    by_file: dict[str, list[Named]] = {}
    for each in scores:
        by_file.setdefault(_parts(each.image)[0], []).append(each)
    images: dict[str, LabeledImage] = {}
    found: list[float | None] = []
    for label in labels:
        fits = [(_fit(each.image, label), each) for each in by_file.get(_parts(label.name)[0], [])]
        most = max((fit for fit, _ in fits), default=0)
        closest = [each for fit, each in fits if fit == most > 0]
        values = {each.score for each in closest}
        if len(values) > 1:
            raise UserError(f"{title}: {label.name} has several scores, {_listed(values)}: keep one of these rows")
        for name in {each.image for each in closest}:
            other = images.setdefault(name, label)
            if other.image != label.image:
                raise UserError(
                    f"{title}: {name} fits several images, {other.name} and {label.name}: write their folders into "
                    "the names"
                )
        found.append(next(iter(values), None))
    if by_ends := [(name, label.image) for name, label in images.items() if _fit(name, label) < len(_parts(name))]:
        logger.warning("%s: names are compared by their ends: %s is taken for %s", title, *by_ends[0])
    return found


def _given(name: str, lower_is_better: bool, of_labels: Joined) -> Scorer:
    return Scorer(name, float, lower_is_better=lower_is_better, takes_pixels=False, of_labels=of_labels)


def _of_table(path: Path, column: str | None) -> tuple[list[Named], str]:
    """Return the scores of a table by image, and the name of their column."""
    source = open_source(path)
    rows = [(place, cells) for place, cells in source.rows if any(map(text_of, cells.values()))]
    header = [*dict.fromkeys(name for _, cells in rows for name in cells if name)]
    by_name = {plain(name): name for name in reversed(header)}
    image = next((by_name[name] for name in IMAGE if name in by_name), None)
    if image is None:
        raise UserError(f"{source.title}: no image column found (columns: {', '.join(header)}); rename one to image")
    numeric = [name for name in header if name != image and _is_numeric(name, [cells for _, cells in rows])]
    numeric = [name for name in numeric if name == OF_RESULTS] or numeric
    if column is None and len(numeric) != 1:
        which = f"several columns of numbers: {', '.join(numeric)}" if numeric else "no column of numbers"
        example = f"{FILE}{path}:{(numeric or ['score'])[0]}"
        raise UserError(f"{source.title} has {which}; name the one to use, as in {example}")
    chosen = numeric[0] if column is None else column
    if chosen not in header:
        raise UserError(f"{source.title}: no column {chosen!r} found (columns: {', '.join(header)}); correct the name")
    return [
        Named(text_of(cells.get(image)), score_of(source.title, place, chosen, text_of(cells.get(chosen))))
        for place, cells in rows
    ], chosen


def _is_numeric(column: str, rows: Sequence[Cells]) -> bool:
    try:
        values = [score_of("", "", column, text_of(cells.get(column))) for cells in rows]
    except UserError:
        return False
    return any(value is not None for value in values)


def _number(where: str, value: Any) -> float | None:
    return None if value is None or value != value else number_of(IN_MEMORY, where, "score", str(value))


def _fit(name: str, label: LabeledImage) -> int:
    """Return how many parts at the end of a name are those of a labeled image; 0 for a name of another image.

    A relative name has to be the end of the path, or the path the end of the name. Two absolute ones, which may be of
    different machines, share at least a folder.
    """
    own, written = _parts(name), _parts(label.name)
    equal = max(_equal(own, written), _equal(own, _parts(label.image)))
    are_absolute = PureWindowsPath(name).anchor and PureWindowsPath(label.name).anchor
    return equal if equal >= min(len(own), len(written), FILE_AND_FOLDER if are_absolute else len(own)) else 0


def _parts(path: str | Path) -> tuple[str, ...]:
    """Return the names in a path of any system from its end, in the form in which names are compared."""
    windows = PureWindowsPath(path)
    return tuple(folded(part) for part in reversed(windows.parts) if part not in (windows.anchor, "..")) or ("",)


def _equal(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many parts at the beginning are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _listed(values: Iterable[float | None]) -> str:
    return " and ".join("none" if value is None else f"{value:g}" for value in islice(values, EXAMPLES))
