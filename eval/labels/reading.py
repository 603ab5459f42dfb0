"""Labels of one's own in any form as ``LabeledImage``, checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agenticiqa.eval.datasets import (
    LabeledImage,
    MosScale,
    chosen_split,
    labeled,
    mos_scale,
    number_of,
    refuse_unusable,
)
from agenticiqa.eval.labels.columns import OTHERS, Declared, columns_of, text_of
from agenticiqa.eval.labels.embedded import file_of
from agenticiqa.eval.labels.sources import Cells, Source
from agenticiqa.programs.errors import UserError


def read_own(source: Source, declared: Declared, split: str | None = None) -> list[LabeledImage]:
    """The labeled images of a source, all or of one split, in its order, with their MOS, higher is better.

    Labels that are declared as lower is better become their mirror image in the scale: ``mos_range``, or the usual one
    that holds all of them, of any split. Embedded images are written to the cache folder. Raises UserError, in one
    line, as ``read_labels`` does, and for scores beyond ``mos_range``.
    """
    rows = [(place, row) for place, row in _named(source, declared, split) if row]
    if not rows:
        raise UserError(f"{source.title}: expected at least one labeled image, found none; add rows")
    chosen = chosen_split(source.title, rows, split)
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
        named = {name: cells.get(column) for name, column in columns[found].items()}
        row = {name: text for name in ("mos", *OTHERS) if name != "reference" and (text := text_of(named.get(name)))}
        if split is None or row.get("split") == split:
            row |= _files(f"{source.title}: {place}", named)
        yield place, row


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
