"""Read label rows from a table, a folder, or a data set of the package ``datasets``, with their places for messages.

``.csv``, ``.tsv``, ``.xlsx`` (the first sheet), ``.jsonl`` (one object per line), ``.json`` and ``.parquet`` files; a
folder with one of ``TABLES`` in it; a folder written by ``Dataset.save_to_disk``; ``hub:owner/name@revision``, of the
Hugging Face hub; in Python also a DataFrame of pandas or polars, and any iterable of (image, mos) pairs or of dicts.
Cells are texts, numbers, or images: bytes, or a dict with ``bytes`` and ``path``. A ``ClassLabel`` is the name of its
class.
"""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agenticiqa.configs.user_files import open_regular, open_text
from agenticiqa.configs.yaml_json import json_value, json_values
from agenticiqa.eval.labels.sheets import sheet_lines
from agenticiqa.programs.batch.csv_table import read_csv
from agenticiqa.programs.errors import UserError

TABLES = ("labels.csv", "metadata.csv", "metadata.jsonl", "metadata.parquet")  # the last three are ImageFolder's names
SAVED = ("dataset_dict.json", "state.json")
HUB = "hub:"
COMMIT = 40  # hex digits of a commit
HUB_SECONDS = 20
FORMS = "give labels as (image, mos) pairs, dicts with image and mos, a DataFrame, or the name of a file"

Cells = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A source of label rows: ``title`` names it in messages, ``name`` is short; paths are relative to ``folder``.

    ``rows`` can be read once, each with its place ("line 3"). ``pinned`` names data not on disk with its commit.
    ``table`` names images in the rows of a Parquet file or a data set.
    """

    title: str
    name: str
    folder: Path
    rows: Iterator[tuple[str, Cells]]
    pinned: str | None = None
    table: str = ""

    def name_in(self, place: str) -> str:
        """Return the name of an image in a row: as ``assess`` has it (``train.parquet#0``), or else its place."""
        if not self.table:
            return place
        number, _, split = place.removeprefix("row ").partition(" of ")
        return f"{self.table}{split and f'/{split}'}#{int(number) - 1}"


def holds_labels(data: Path) -> bool:
    """Return whether ``data`` has a form that ``open_source`` reads, without reading it."""
    if os.path.isdir(data):
        return any((data / name).is_file() for name in (*SAVED, *TABLES))
    return data.as_posix().startswith(HUB) or data.suffix.lower() in READERS


def open_source(data: Path, root: Path | None = None) -> Source:
    """Return the rows of ``data``, with paths relative to ``root``, if it is given.

    Raises UserError, in one line, for data in another form, and if it cannot be read or reached.
    """
    if root is not None:
        return replace(open_source(data), folder=_existing(root))
    if data.as_posix().startswith(HUB):
        return _of_hub(data.as_posix().removeprefix(HUB))
    if os.path.isdir(data) and any((data / name).is_file() for name in SAVED):
        return _saved(data)
    if os.path.isdir(data):
        table = next((data / name for name in TABLES if (data / name).is_file()), None)
        if table is None:
            raise UserError(
                f"{data}: no labels found in this folder: add one of {', '.join(TABLES)}, or name a folder saved "
                "with save_to_disk() of Hugging Face datasets"
            )
        return open_source(table)
    reader = READERS.get(data.suffix.lower(), _csv_rows)
    folder = data.resolve().parent.name
    name = folder if data.name in TABLES else f"{folder}-{data.stem}"  # several tables of one folder are several sets
    of_rows = data.name if reader is _parquet_rows else ""
    return Source(str(data), name, data.parent, _readable(data, reader(data)), table=of_rows)


def open_sources(data: Sequence[Path], root: Path | None = None) -> Source:
    """Return the rows of several tables in one folder as one source. Raises UserError as ``open_source`` does."""
    first, *others = sources = [open_source(each, root) for each in data]
    if not others:
        return first
    if other := next((each for each in others if each.folder.resolve() != first.folder.resolve()), None):
        raise UserError(f"{other.title} is not in the folder of {first.title}: move it, or name the album with --root")
    rows = ((f"{Path(each.title).name}, {place}", row) for each in sources for place, row in each.rows)
    return replace(first, title=", ".join(each.title for each in sources), rows=rows, table="")


def open_rows(data: Any, root: Path | None = None) -> Source:
    """Return rows in memory, with paths relative to ``root`` or the working folder. Raises UserError for others."""
    if hasattr(data, "to_dicts"):  # a DataFrame of polars
        data = data.to_dicts()
    elif hasattr(data, "notna"):  # one of pandas; its missing values become None
        data = data.astype(object).where(data.notna(), None).reset_index().to_dict("records")
    if not isinstance(data, Iterable) or isinstance(data, Mapping | bytes):
        raise UserError(f"labels: expected rows, found type {type(data).__name__}; {FORMS}")
    rows = [(f"row {number}", _cells(number, row)) for number, row in enumerate(data, 1)]
    if not rows:
        raise UserError(f"labels: no rows found; {FORMS}")
    return Source("labels", "labels", Path() if root is None else _existing(root), iter(rows))


def _existing(root: Path) -> Path:
    if not os.path.isdir(root):
        raise UserError(f"--root {root}: there is no such folder")
    return root


def _cells(number: int, row: Any) -> Cells:
    if isinstance(row, list | tuple) and len(row) == 2:
        row = {"image": row[0], "mos": row[1]}
    if not isinstance(row, Mapping):
        raise UserError(f"labels: row {number} has type {type(row).__name__}; {FORMS}")
    return {name: os.fspath(cell) if isinstance(cell, os.PathLike) else cell for name, cell in row.items()}


def _first_line(error: Exception) -> str:
    """Return the first line of an error of another library, as messages have one line."""
    return next(iter(str(error).splitlines()), "")


def _readable(data: Path, rows: Iterator[tuple[str, Cells]]) -> Iterator[tuple[str, Cells]]:
    try:
        yield from rows
    except (OSError, ValueError, csv.Error) as error:  # ValueError: not UTF-8, no JSON, no parquet
        why = error.strerror if isinstance(error, OSError) and error.strerror else _first_line(error)
        if isinstance(error, UnicodeDecodeError):
            why = f"{why}; save the table as CSV in UTF-8, or as .xlsx"
        kind = data.suffix.lower().removeprefix(".").upper() if data.suffix.lower() in READERS else "CSV"
        raise UserError(f"{data}: cannot be read as a table of labels ({kind}, UTF-8): {why}") from error


# pandas would lose what messages need: the line of a row after blank lines or a cell of several lines, and where a
# quotation mark is misplaced. It takes a surplus cell for an index, fills the keys that other JSON rows have with NaN,
# and reads a Parquet file with embedded images as a whole; ``datasets`` first copies all of them into its cache.


def _csv_rows(path: Path) -> Iterator[tuple[str, Cells]]:
    with open_text(path, newline="") as file:
        table = read_csv(file, str(path))
        yield from table.rows
        yield "line 1", dict.fromkeys(table.columns)  # an empty row, so that the columns are known even without rows


def _json_rows(path: Path) -> Iterator[tuple[str, Cells]]:
    """Yield the objects of a file, one per line; a list, or objects over several lines, are read as a whole."""
    with open_text(path) as file:
        first = next((line.strip() for line in file if line.strip()), "")
    if first.startswith("[") or first == "{":
        yield from _whole_json_rows(path)
        return
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                row = json_value(line)
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is not a JSON object")
                yield f"line {number}", row


def _whole_json_rows(path: Path) -> Iterator[tuple[str, Cells]]:
    """Yield the rows of objects, of a list of objects, or of one object: MOS by image, columns, or with one list."""
    with open_text(path) as file:
        values = [*json_values(file.read())]
    rows = values[0] if len(values) == 1 else values
    if isinstance(rows, dict):
        cells = [*rows.values()]
        lists = [cell for cell in cells if isinstance(cell, list)]
        columns = [[*cell.values()] if isinstance(cell, dict) else cell for cell in cells]
        if cells and all(isinstance(cell, int | float) for cell in cells):
            rows = [{"image": image, "mos": mos} for image, mos in rows.items()]
        elif columns and all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
            rows = [dict(zip(rows, row, strict=True)) for row in zip(*columns, strict=True)]
        else:
            rows = lists[0] if len(lists) == 1 else [rows]
    for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
        if not isinstance(row, dict):
            raise ValueError(f"row {number} is not a JSON object")
        yield f"row {number}", row


def _sheet_rows(path: Path) -> Iterator[tuple[str, Cells]]:
    """Yield the rows of an Excel file's first sheet below its first line with a text."""
    header: list[str] = []
    for number, line in enumerate(sheet_lines(path), 1):
        if not header:
            header = ["" if cell is None else str(cell).strip() for cell in line if any(line)]
        elif any(cell is not None for cell in line):
            yield f"row {number}", {name: cell for name, cell in zip(header, line, strict=False) if name}


def _parquet_rows(path: Path) -> Iterator[tuple[str, Cells]]:
    from pyarrow.parquet import ParquetFile  # a late import that takes a third of a second; it comes with datasets

    with open_regular(path) as file, ParquetFile(file) as table:
        batches = table.iter_batches(batch_size=64)
        for number, row in _numbered(batches, table.schema_arrow):
            yield f"row {number}", row


READERS = {
    **dict.fromkeys((".csv", ".tsv"), _csv_rows),
    **dict.fromkeys((".jsonl", ".ndjson"), _json_rows),
    **{".json": _whole_json_rows, ".parquet": _parquet_rows, ".xlsx": _sheet_rows},
}


def _saved(folder: Path) -> Source:
    from datasets import load_from_disk

    try:
        dataset = load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: cannot be loaded with the package datasets: {error}") from error
    name = folder.resolve().name
    return Source(str(folder), name, folder, _dataset_rows(dataset), table=name)


def _of_hub(address: str) -> Source:
    """Return data of the hub at the commit that a revision (default: main) currently refers to."""
    from datasets import load_dataset
    from httpx import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    name, _, revision = address.partition("@")
    try:
        if not (len(revision) == COMMIT and set(revision) <= set("0123456789abcdef")):
            revision = HfApi().dataset_info(name, revision=revision or None, timeout=HUB_SECONDS).sha or ""
        dataset = load_dataset(name, revision=revision)
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, HTTPError, OSError, ValueError) as error:
        raise UserError(
            f"{HUB}{address}: cannot be loaded ({type(error).__name__}: {_first_line(error)}); without "
            f"network, set HF_HUB_OFFLINE=1 and use {HUB}OWNER/NAME@COMMIT (40 digits) of a cached copy, or name a "
            "folder saved with save_to_disk()"
        ) from error
    title = f"{HUB}{name}@{revision}"
    short = name.rpartition("/")[2]
    return Source(title, short, Path(), _dataset_rows(dataset), pinned=title, table=short)


def _dataset_rows(dataset: Any) -> Iterator[tuple[str, Cells]]:
    """Yield the rows of a Dataset, or of all splits of a DatasetDict, without decoding images."""
    for split, part in dataset.items() if isinstance(dataset, dict) else [(None, dataset)]:
        for number, row in _numbered(part.with_format("arrow").iter(64), part.features.arrow_schema):
            if split is None:
                yield f"row {number}", row
            else:
                yield f"row {number} of {split}", {"split": split, **row}


def _class_names(schema: Any) -> Mapping[str, Sequence[str]]:
    """Return the names of the classes by column, as ``datasets`` writes them into an Arrow schema."""
    if b"huggingface" not in (schema.metadata or {}):
        return {}
    from datasets import ClassLabel, Features

    features = Features.from_arrow_schema(schema).items()
    return {name: feature.names for name, feature in features if isinstance(feature, ClassLabel)}


def _numbered(batches: Iterable[Any], schema: Any) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of Arrow batches, from 1, with the name of each class in place of its code; -1 is no class."""
    classes = _class_names(schema)
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, row in enumerate(rows, 1):
        codes = ((name, row[name], names) for name, names in classes.items())
        yield number, row | {name: None if code is None or code < 0 else names[code] for name, code, names in codes}
