"""Write tables as CSV in which a spreadsheet finds text and numbers but no formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from agenticiqa.programs.images.files import printable_path, without_controls
from agenticiqa.programs.images.names import FORMULA, NO_WIDTH

RAW_CSV: ContextVar[bool] = ContextVar("raw_csv", default=False)  # --raw-csv: write cells unchanged
# Text before a formula: nothing, at the beginning of the cell, or a separator. An apostrophe after it makes it text.
# The page for ratings uses the same pattern, so it is one of JavaScript, too.
BEFORE_FORMULA = (
    rf"^(?=[\t\r\n]|[\s{NO_WIDTH}]*{FORMULA}[\s\S])"
    rf"|(?:;|(?!^)[\t\r\n])(?:[^\S\t\r\n]|[{NO_WIDTH}])*(?={FORMULA})"
)


def csv_text(rows: Iterable[Sequence[Any]], line_end: str = "\r\n") -> str:
    """Return the rows as CSV (RFC 4180), with a blank for each control character, as ``without_controls`` does.

    A text that a spreadsheet would read as a formula gets a leading apostrophe; a number such as -1.5 does not. So does
    the rest of a text after a semicolon, which separates cells in spreadsheets of many countries. ``images.names``
    finds a file by the name that is written here.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows(rows if RAW_CSV.get() else ([_cell(value) for value in row] for row in rows))
    return file.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or _is_number(value):
        return value
    return re.sub(BEFORE_FORMULA, r"\g<0>'", without_controls(printable_path(value)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
