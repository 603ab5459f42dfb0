"""Read Excel files, which need the extra xlsx."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from agenticiqa.programs.errors import UserError


def sheet_lines(path: Path, sheet: str | None = None) -> list[tuple[Any, ...]]:
    """Return the lines of an Excel sheet (default: the first). Raises UserError without openpyxl, and ValueError."""
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
        return list(book[sheet or book.sheetnames[0]].iter_rows(values_only=True))
    finally:
        book.close()
