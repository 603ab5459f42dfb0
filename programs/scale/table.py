"""Store rows of results as Parquet: one file per shard, with the keys of a JSON line as columns.

``shard-00012.parquet`` has a row for each image of the shard; a failed image has an ``error``. Its footer identifies
the shard (``ShardStamp``). A reader loads the columns that it needs, one file at a time. The folder ``.run`` beside it
has ``run.json`` (the settings), ``plan.jsonl`` (the shards) and, when all images are assessed, ``_SUCCESS`` (the
counts).
"""

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from agenticiqa.programs.batch.columns import TYPED, columns_of, row_of, value_of
from agenticiqa.programs.batch.store import SavedLines, Store
from agenticiqa.programs.data_sets.places import open_place
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.images.own import STAMP, is_shard_folder, run_folder
from agenticiqa.programs.result_row import Row

READERS = 16  # footers that are read at a time
_SHARD = re.compile(r"shard-(\d{5,})\.parquet")

PLACE = pa.field("place", pa.int32(), nullable=False)  # the place of the image in its shard, from 0
SCHEMA = pa.schema([PLACE, *TYPED])


@dataclass(frozen=True)
class ShardStamp:
    """The content of the footer of a shard's file.

    ``fingerprint`` identifies the run's settings, ``digest`` the shard's images and questions. There are ``images``
    rows; ``failed`` rows have an error, ``unscored`` rows have neither a score nor an answer, ``incomplete`` rows
    have a score from an incomplete answer of a model. ``skipped`` counts images in other formats. A shard that is not
    ``complete`` lacks rows or has temporary errors, such as a limit or an unreachable server. With ``limit``, only that
    many images were requested (``--limit``).
    """

    fingerprint: str
    digest: str
    images: int
    failed: int
    unscored: int
    incomplete: int
    complete: bool
    limit: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)


class ShardFolder:
    """The folder of a run's shards: a path, or an address that fsspec supports (``s3://bucket/scores``).

    It is a ``batch.store.Store``, in which no row replaces another one. ``root`` is its path in its file system. Files
    other than shards are in the ``run_folder`` beside it.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place).rstrip("/") or "/"
        self._fs, root = open_place(self.place)
        self.root = root.rstrip("/")
        self.is_local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    def shards(self) -> list[int]:
        """Return the numbers of the shards that have a file, in order."""
        self._fs.invalidate_cache()
        if not self._fs.isdir(self.root):
            return []
        names = (str(path).rstrip("/").rpartition("/")[2] for path in self._fs.ls(self.root, detail=False))
        return sorted(int(match[1]) for name in names if (match := _SHARD.fullmatch(name)))

    def stamps(self, numbers: Sequence[int]) -> dict[int, ShardStamp | None]:
        """Return the footer of each file, by number; ``None`` for a foreign or damaged file."""
        with ThreadPoolExecutor(READERS) as pool:
            return dict(zip(numbers, pool.map(self._stamp, numbers), strict=True))

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows of all shards in order, one file after the other: complete, or these columns only.

        Raises UserError for a folder without shards.
        """
        numbers = self.shards()
        if not numbers:
            raise UserError(f"{self.place}: found no shards; write them with agenticiqa assess ... --parquet")
        for number in numbers:
            for row in self.of_shard(number, columns):
                yield {name: value_of(name, value) for name, value in row.items()} if columns else row

    def of_shard(self, number: int, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows of a shard in order: complete, as in JSON lines, or ``columns`` as they are in the file.

        Raises UserError for a file that is not a shard of results.
        """
        try:
            with self._fs.open(self._path(shard_name(number)), "rb") as file, pq.ParquetFile(file) as table:
                for batch in table.iter_batches(256, columns=columns):
                    rows = batch.to_pylist()
                    yield from rows if columns else map(row_of, rows)
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise UserError(f"{self.place}/{shard_name(number)}: expected a shard of results ({error})") from error

    def write_shard(self, number: int, rows: Mapping[int, Row], stamp: ShardStamp) -> None:
        """Write the rows of a shard, ordered by place, atomically: readers find the complete file or no file."""
        flat = [{"place": place, **columns_of(rows[place])} for place in sorted(rows)]
        schema = SCHEMA.with_metadata({STAMP: orjson.dumps(asdict(stamp))})
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(flat, schema), file, compression="zstd")
        self.write(shard_name(number), file.getvalue())

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Write a file atomically. On a disk it is a ``.part`` until it is renamed; object stores write atomically."""
        if self.is_local:
            write_atomically(self._path(name), content)
        else:
            self._fs.pipe_file(self._path(name), content if isinstance(content, bytes) else b"".join(content))

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return the bytes of a file or of a part of it. Raises FileNotFoundError."""
        return bytes(self._fs.cat_file(self._path(name), start=start, end=end))

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        if self._fs.exists(self._path(name)):
            self._fs.rm_file(self._path(name))

    def described(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in a file; ``None`` without one."""
        try:
            value = json.loads(self.read(name))
        except (FileNotFoundError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def _stamp(self, number: int) -> ShardStamp | None:
        try:
            with self._fs.open(self._path(shard_name(number)), "rb") as file:
                metadata = pq.read_metadata(file).metadata or {}
            return ShardStamp(**orjson.loads(metadata[STAMP]))
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            return None

    def _path(self, name: str) -> str:
        return f"{self.root if _SHARD.fullmatch(name) else run_folder(self.root)}/{name}"


def store_at(place: str | Path) -> Store:
    """Return the saved results at a place: a folder of shards, or a file of JSON lines."""
    return ShardFolder(place) if is_shard_folder(place) or os.path.isdir(place) else SavedLines(Path(place))


def shard_name(number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{number:05d}.parquet"
