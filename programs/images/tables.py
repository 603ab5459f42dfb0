"""Read the rows of a table in memory that names or holds images: of pandas, Polars, Arrow or ``datasets``."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.sources import ImageSource, StoredImage, UndecodedImage

IMAGE_COLUMNS = (
    *("image", "img", "jpg", "jpeg", "png", "webp", "bytes"),
    *("path", "image_path", "file", "filename", "file_name"),
)
WEB_COLUMNS = ("url", "image_url")  # columns of addresses that are not fetched
BESIDE_IMAGE = ("query", "options", "reference", "resize_reference")  # other columns that are read
NAME_IT, RENAME = "name one with --image-column", "rename that of the images to image"  # on the command line, in Python
AT_A_TIME = 64  # rows of an Arrow table that become Python objects


@dataclass(frozen=True)
class NoImage(StoredImage):
    """A stand-in for a missing image: reading it fails with the reason."""

    why: str

    def read_content(self) -> bytes:
        """Raise ImageError."""
        raise ImageError(self.why, self.source)


def image_column(name: str, columns: Iterable[str], named: str | None = None, remedy: str = NAME_IT) -> str:
    """Return the column of the images in a table: the one that the user ``named``, else the first of IMAGE_COLUMNS.

    Letters may be in any case. Raises ImageError, with the remedy, without such a column.
    """
    there = [*columns]
    for wanted in IMAGE_COLUMNS if named is None else (named.lower(),):
        for column in there:
            if column.lower() == wanted:
                return column
    found = f"found {', '.join(there) or 'none'}"
    if named is not None:
        raise ImageError(f"there is no column {named!r}, {found}; name one of them with --image-column", name)
    if any(column.lower() in WEB_COLUMNS for column in there):
        raise ImageError(
            f"{found}; web addresses are not fetched: download the images, for example with img2dataset", name
        )
    raise ImageError(f"expected a column image or path, {found}; {remedy}", name)


def image_in(cell: Any, name: str, at: Callable[[str], ImageSource] = str) -> Any:
    """Return the image in a cell: bytes with this name, the image at a path, or one of them in a dict of ``datasets``.

    A cell with something else of JSON has no image. Other objects, such as a PIL image, are returned unchanged.
    """
    if isinstance(cell, Mapping) and cell.keys() & {"bytes", "path"}:
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, bytes):
        return UndecodedImage(name, cell)
    if cell is None or (isinstance(cell, str) and not cell):
        return NoImage(name, "the row has no image")
    if isinstance(cell, int | float | list | Mapping):
        found = f"the column has a {type(cell).__name__}, expected the bytes or the path of an image"
        return NoImage(name, found)
    return at(cell) if isinstance(cell, str) else cell


def table_rows(given: Any) -> Iterator[dict[str, Any]] | None:
    """Return the rows of a table with the columns that are read, as ``image`` and ``BESIDE_IMAGE``.

    ``None`` for what is no table. Images of a data set are not decoded, so that a damaged one is the fault of its row
    alone. Raises ImageError for a table without a column of images, when the first row is read.
    """
    rows = _all_rows(given)
    return None if rows is None else _read(rows)


def _read(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    column = None
    for row in rows:
        names = [name for name in row if isinstance(name, str)]
        column = column or image_column("the table", names, remedy=RENAME)
        yield {"image": row[column]} | {name.lower(): row[name] for name in names if name.lower() in BESIDE_IMAGE}


def _all_rows(given: Any) -> Iterable[Mapping[str, Any]] | None:
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):  # a LazyFrame of Polars
        given = given.collect()
    if hasattr(given, "iter_rows"):  # a DataFrame of Polars
        rows: Iterable[Mapping[str, Any]] = given.iter_rows(named=True)
        return rows
    if hasattr(given, "itertuples"):  # a DataFrame of pandas, whose missing values become None
        cells = given.astype(object).where(given.notna(), None)
        return (dict(zip(cells.columns, row, strict=True)) for row in cells.itertuples(index=False, name=None))
    if hasattr(given, "to_batches"):
        return _arrow_rows(given.to_batches())
    if hasattr(given, "read_next_batch"):
        return _arrow_rows(given)
    if hasattr(given, "to_pylist") and hasattr(given, "num_rows"):
        return _arrow_rows([given])
    datasets = sys.modules.get("datasets")  # a package that is not loaded has made no data set
    if datasets is not None and isinstance(given, datasets.DatasetDict | datasets.IterableDatasetDict):
        raise ImageError(f"is a data set with splits; take one, such as data[{next(iter(given), 'train')!r}]", "<data>")
    if datasets is None or not isinstance(given, datasets.Dataset | datasets.IterableDataset):
        return None
    stored = given.with_format(None)
    for name, feature in (given.features or {}).items():
        if isinstance(feature, datasets.Image):
            stored = stored.cast_column(name, datasets.Image(decode=False))
    return stored


def _arrow_rows(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for start in range(0, batch.num_rows, AT_A_TIME):
            yield from batch.slice(start, AT_A_TIME).to_pylist()
