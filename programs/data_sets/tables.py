"""Read tables of images in parts: Parquet files, and splits that ``datasets.save_to_disk`` wrote."""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from agenticiqa.programs.data_sets.kinds import PARQUET
from agenticiqa.programs.data_sets.places import open_place, source_at, stamp_of
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.named_files import NamedFiles
from agenticiqa.programs.images.sources import StoredImage, is_encoded, read_source
from agenticiqa.programs.images.tables import image_in

AT_A_TIME = 64  # rows in memory while a table is read in order
IN_PART, PARTS_KEPT = 16, 4  # rows of a part that is kept for the next images, and the number of such parts


class ImageTable(NamedTuple):
    """The columns of a table, the number of its rows, and a text that changes with its content."""

    schema: pa.Schema
    rows: int
    stamp: str

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.schema.names
        return names

    def has_paths(self, column: str) -> bool:
        """Return whether a column has texts."""
        type_ = self.schema.field(column).type
        return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


@dataclass(frozen=True)
class RowImage(StoredImage):
    """The image in a row of a table."""

    table: str
    column: str
    row: int

    @property
    def place(self) -> tuple[str, int]:
        """The table and the row."""
        return self.table, self.row

    def read_content(self) -> bytes:
        """Read the image with its neighbors. Raises ImageError."""
        try:
            value = _value(self.table, self.column, self.row)
        except (OSError, pa.ArrowException, IndexError, KeyError, StopIteration) as error:
            raise ImageError(f"the row cannot be read ({error or 'it is missing'})", self.source) from error
        content = read_source(image_in(value, self.source, partial(image_at, files_of(self.table)))).content
        assert isinstance(content, bytes)  # bytes and files
        return content


def files_of(table: str) -> NamedFiles:
    """Return the files that a local table names, relative to its folder."""
    return NamedFiles(table, Path(table).parent)


def place_of(files: NamedFiles, name: str) -> str:
    """Return the path or address of a file that a table names; a path may be of Windows, unless the table is remote.

    Raises ImageError for a Windows path that is ambiguous.
    """
    if "://" not in files.title:
        return files.listed(name)
    return name if "://" in name or is_encoded(name) else os.path.join(os.path.dirname(files.title), name)


def image_at(files: NamedFiles, name: str) -> ImageSource:
    """Return the image at a path or address that a table names. Raises ImageError as ``place_of`` does."""
    return source_at(place_of(files, name))


def describe_table(name: str) -> ImageTable:
    """Describe a Parquet file or a split. Raises OSError and pyarrow's exceptions."""
    fs, path = open_place(name)
    if _is_split(name):
        split = _split(name)
        return ImageTable(split.features.arrow_schema, len(split), str(split._fingerprint))
    with fs.open(path, "rb") as file, pq.ParquetFile(file) as table:
        return ImageTable(table.schema_arrow, table.metadata.num_rows, stamp_of(fs.info(path)))


def read_rows(name: str, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows from ``start`` up to ``stop`` of a table, with an image as a path, bytes, or a dict of both."""
    if _is_split(name):
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


class _Column:
    """A column of a Parquet file, read in order by several threads: a row group has no places to begin but its start.

    The last parts are kept, because images that are assessed at the same time are neighbors.
    """

    def __init__(self, name: str, column: str) -> None:
        fs, path = open_place(name)
        self._table, self._column, self._lock = pq.ParquetFile(fs.open(path, "rb")), column, Lock()
        groups = range(self._table.num_row_groups)
        self._begins = [*accumulate((self._table.metadata.row_group(each).num_rows for each in groups), initial=0)]
        self._parts: Iterator[pa.RecordBatch] = iter(())
        self._next, self._end = 0, 0  # the first row of the next part, and the row after those of its group
        self._kept: deque[tuple[int, pa.RecordBatch]] = deque(maxlen=PARTS_KEPT)

    def value(self, row: int) -> Any:
        """Return the cell of a row. Raises OSError, IndexError and pyarrow's exceptions."""
        with self._lock:
            for first, part in self._kept:
                if first <= row < first + part.num_rows:
                    return part.column(0)[row - first].as_py()
            if not self._next <= row < self._end:
                group = bisect_right(self._begins, row) - 1
                self._parts = self._table.iter_batches(IN_PART, row_groups=[group], columns=[self._column])
                self._next, self._end = self._begins[group], self._begins[group + 1]
            while True:
                part = next(self._parts)
                first, self._next = self._next, self._next + part.num_rows
                if row < self._next:
                    self._kept.append((first, part))
                    return part.column(0)[row - first].as_py()


def _value(name: str, column: str, row: int) -> Any:
    if _is_split(name):
        return _split(name).select_columns([column]).with_format("arrow")[row : row + 1][column][0].as_py()
    changed = "" if "://" in name else str(os.stat(name).st_mtime_ns)
    return _column(name, column, changed).value(row)


@lru_cache(maxsize=2)
def _column(name: str, column: str, changed: str) -> _Column:
    return _Column(name, column)


def _is_split(name: str) -> bool:
    fs, path = open_place(name)
    return not name.lower().endswith(PARQUET) and bool(fs.isdir(path))


@lru_cache(maxsize=4)
def _split(folder: str) -> Any:
    from datasets import load_from_disk

    return load_from_disk(folder)
