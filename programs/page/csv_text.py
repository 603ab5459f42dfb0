"""Write tables as CSV in which a spreadsheet finds text and numbers but no formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from agenticiqa.programs.images.files import without_controls

RAW_CSV: ContextVar[bool] = ContextVar("raw_csv", default=False)  # --raw-csv: write cells unchanged
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
# Beginnings of cells, if ; or a tab separates them.
AFTER_SEPARATOR = re.compile(r"([;\t\r\n][^\S\t\r\n]*+)(?=[=+\-@＝＋－＠])")


def csv_text(rows: Iterable[Sequence[Any]], line_end: str = "\r\n") -> str:
    """Return the rows as CSV (RFC 4180), with a blank for each control character.

    A text that a spreadsheet would read as a formula gets a leading apostrophe; a number such as -1.5 does not. So does
    the rest of a text after a semicolon, which separates cells in spreadsheets of many countries.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows(rows if RAW_CSV.get() else ([_cell(value) for value in row] for row in rows))
    return file.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.lstrip()
    blanks = value.removesuffix(text)
    is_formula = len(value) > 1 and text.startswith(FORMULA) and not _is_number(value)
    if is_formula or blanks.startswith(("\t", "\r", "\n")):
        blanks = f"'{blanks}"
    return without_controls(blanks + AFTER_SEPARATOR.sub(r"\1'", text))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
