"""Read the label files of an archive as rows of cells: CSV, Excel sheets, MATLAB files, and lines of text.

Each reader gets the folder of the archive and the paths of the label files below it. They raise OSError, and ValueError
or KeyError for a file of another format.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from agenticiqa.eval.labels.sheets import sheet_lines
from agenticiqa.programs.batch.csv_table import rows_of

Cells = Mapping[str, Any]  # the cells of a row, by column


def csv_rows(folder: Path, files: Sequence[str], splits: Sequence[str] = ()) -> Iterator[Cells]:
    """Yield the rows of CSV files with headers; if ``splits`` names one for each file, it is in the cell split."""
    for file, split in zip(files, splits or repeat(None, len(files)), strict=True):
        try:
            rows = rows_of(folder / file)
        except csv.Error as error:
            raise ValueError(error) from error
        yield from rows if split is None else ({**row, "split": split} for row in rows)


def sheet_rows(folder: Path, files: Sequence[str], columns: Sequence[str], sheet: str | None = None) -> list[Cells]:
    """Return non-blank rows of an Excel sheet (default: the first) below the first line with all ``columns``.

    Raises UserError without openpyxl.
    """
    (path,) = (folder / file for file in files)
    lines = sheet_lines(path, sheet)
    header = next((at for at, line in enumerate(lines) if set(columns) <= set(line)), None)
    if header is None:
        raise KeyError(f"no line has the columns {', '.join(columns)}")
    rows = [dict(zip(lines[header], line, strict=True)) for line in lines[header + 1 :]]
    return [row for row in rows if any(row[column] is not None for column in columns)]


def mat_rows(folder: Path, files: Sequence[str], variables: Sequence[str]) -> list[Cells]:
    """Return the values of variables of equal size in MATLAB files, as rows in their order."""
    arrays: dict[str, NDArray[Any]] = {}
    for file in files:
        try:
            arrays |= loadmat(folder / file)
        except (MatReadError, NotImplementedError) as error:
            raise ValueError(f"{Path(file).name} is not a MATLAB file of version 7 or earlier: {error}") from error
    columns = [[np.asarray(cell).item() for cell in arrays[variable].ravel()] for variable in variables]
    return [dict(zip(variables, row, strict=True)) for row in zip(*columns, strict=True)]


def text_rows(
    folder: Path, files: Sequence[str], columns: Sequence[str], delimiter: str | None = None
) -> Iterator[Cells]:
    """Yield the non-blank lines of text files side by side; ``columns`` names the cells of such a row."""
    texts = [(folder / file).read_text(encoding="utf-8-sig") for file in files]
    lines = ([line.split(delimiter) for line in text.splitlines() if line.strip()] for text in texts)
    for row in zip(*lines, strict=True):
        yield dict(zip(columns, chain(*row), strict=True))
