"""Write tables as CSV in which a spreadsheet finds text and numbers but no formulas."""

import csv
import io
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from agenticiqa.programs.images.files import without_controls

RAW_CSV: ContextVar[bool] = ContextVar("raw_csv", default=False)  # --raw-csv: write cells unchanged
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Sequence[Any]], line_end: str = "\r\n") -> str:
    """Return the rows as CSV (RFC 4180), with a blank for each control character.

    A text that a spreadsheet would read as a formula gets a leading apostrophe; a number such as -1.5 does not.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows(rows if RAW_CSV.get() else ([_cell(value) for value in row] for row in rows))
    return file.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    is_formula = len(value) > 1 and value.startswith(FORMULA) and not _is_number(value)
    return without_controls(f"'{value}" if is_formula else value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
