"""Read tables of images in parts: Parquet files, and splits that ``datasets.save_to_disk`` wrote."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from agenticiqa.programs.scale.places import open_place, stamp_of

SPLIT, SPLITS = "state.json", "dataset_dict.json"  # the files of a split, and of a folder of splits
AT_A_TIME = 64  # rows in memory


class ImageTable(NamedTuple):
    """The columns of a table, the number of its rows, and a text that changes with its content."""

    columns: list[str]
    rows: int
    stamp: str


def describe_table(name: str) -> ImageTable:
    """Describe a Parquet file or a split. Raises OSError and pyarrow's exceptions."""
    if not name.lower().endswith(".parquet"):
        split = _split(name)
        return ImageTable(split.column_names, len(split), str(split._fingerprint))
    fs, path = open_place(name)
    with fs.open(path, "rb") as file, pq.ParquetFile(file) as table:
        return ImageTable(table.schema_arrow.names, table.metadata.num_rows, stamp_of(fs.info(path)))


def read_rows(name: str, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows from ``start`` up to ``stop`` of a table, with an image as a path, bytes, or a dict of both."""
    if not name.lower().endswith(".parquet"):
        yield from _split(name).select_columns([*columns]).with_format("arrow")[start:stop].to_pylist()
        return
    fs, path = open_place(name)
    with fs.open(path, "rb") as file, pq.ParquetFile(file) as table:
        stop = table.metadata.num_rows if stop is None else stop
        end = 0
        for group in range(table.num_row_groups):
            begin, end = end, end + table.metadata.row_group(group).num_rows
            if end <= start or begin >= stop:
                continue
            for batch in table.iter_batches(AT_A_TIME, row_groups=[group], columns=[*columns]):
                first, last = max(start - begin, 0), max(min(stop - begin, batch.num_rows), 0)
                if first < last:
                    yield from batch.slice(first, last - first).to_pylist()
                begin += batch.num_rows


def splits_in(name: str) -> list[str]:
    """Return the folders of the splits in a folder that ``datasets`` saved: the folder itself, or those it lists."""
    fs, path = open_place(name)
    if not fs.exists(f"{path}/{SPLITS}"):
        return [name]
    splits = json.loads(fs.cat_file(f"{path}/{SPLITS}"))["splits"]
    return [f"{name.rstrip('/')}/{split}" for split in splits]


@lru_cache(maxsize=4)
def _split(folder: str) -> Any:
    from datasets import load_from_disk

    return load_from_disk(folder)
