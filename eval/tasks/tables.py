"""Read label tables of archives: CSV, MATLAB files, Excel sheets, and names in mixed case."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from agenticiqa.programs.batch.csv_table import rows_of
from agenticiqa.programs.errors import UserError


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV with a header. Raises OSError, and ValueError if it is not UTF-8 or is malformed."""
    try:
        return rows_of(path)
    except csv.Error as error:
        raise ValueError(error) from error


def mat_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the variables of a MATLAB file. Raises OSError, and ValueError for a file of another format."""
    try:
        return dict(loadmat(path))
    except (MatReadError, NotImplementedError) as error:
        raise ValueError(f"{path.name} is not a MATLAB file of version 7 or earlier: {error}") from error


def texts(cells: NDArray[Any]) -> list[str]:
    """Return a MATLAB cell array of texts, in its order. Raises ValueError for other contents."""
    return [str(np.asarray(cell).item()) for cell in cells.ravel()]


def sheet_rows(path: Path, columns: Sequence[str], sheet: str | None = None) -> list[dict[str, Any]]:
    """Return non-blank rows of an Excel sheet (default: the first) below the first line with all ``columns``.

    Raises UserError without openpyxl, KeyError without the sheet or that line, OSError, and ValueError for a file that
    is not .xlsx.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UserError(
            f"{path.name} is an Excel file, which needs openpyxl: pip install 'agenticiqa[xlsx]'"
        ) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except BadZipFile as error:
        raise ValueError(f"{path.name} is not an .xlsx file") from error
    try:
        lines = list(book[sheet or book.sheetnames[0]].iter_rows(values_only=True))
    finally:
        book.close()
    header = next((at for at, line in enumerate(lines) if set(columns) <= set(line)), None)
    if header is None:
        raise KeyError(f"no line has the columns {', '.join(columns)}")
    rows = [dict(zip(lines[header], line, strict=True)) for line in lines[header + 1 :]]
    return [row for row in rows if any(row[column] is not None for column in columns)]


def names_by_lower_case(folder: Path) -> dict[str, str]:
    """Return the names of a folder's files by lower-case name; empty if the folder does not exist."""
    return {file.name.lower(): file.name for file in folder.iterdir()} if folder.is_dir() else {}
