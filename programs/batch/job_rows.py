"""Read and check a row of a table that names images: a line of JSON, or the cells of CSV or Parquet."""

from collections.abc import Mapping, Sequence
from typing import Any

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import is_name_of_image
from agenticiqa.programs.images.tables import image_column
from agenticiqa.programs.stages.question import checked

ROW = '{"image": "a.jpg", "query": "Main flaw?", "options": ["Blur", "Noise"]}'
MISNAMED = {"question": "query", "prompt": "query", "choices": "options", "candidates": "options"}
CELLS = {"options": '["Blur", "Noise"]', "resize_reference": "true"}  # columns of CSV with JSON in their cells
FIELDS = {"image": str, "query": str, "reference": str, "resize_reference": bool}


def column_of_images(name: str, columns: Sequence[str], named: str | None) -> str:
    """Return the column of the images in a CSV file, as ``image_column`` does.

    Raises UserError for a table without a header, in which the first image would be taken for the name of a column.
    """
    if any(map(is_name_of_image, columns)):
        found = ", ".join(columns)
        raise UserError(
            f"{name}: expected column names in the first line, found {found}; add a line such as image,query"
        )
    return image_column(name, columns, named)


def row_of_line(line: str | bytes) -> dict[str, Any]:
    """Return the row of a JSON line after checking its types. Raises UserError for an invalid row."""
    try:
        row = json_value(line)
    except ValueError as error:
        raise UserError(f"expected a JSON object, such as {ROW}") from error
    return checked_row(row)


def row_of_cells(cells: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the row of a table's line with its image in ``column``. Raises UserError for an invalid row.

    Cells of CSV are texts, or JSON in the columns of ``CELLS``; spreadsheets write ``TRUE`` for true.
    """
    image, cells = cells[column] or "", {name.lower(): cell for name, cell in cells.items()}
    row: dict[str, Any] = {key: cells[key] for key in FIELDS.keys() | {"options"} if cells.get(key)}
    for key, example in CELLS.items():
        if isinstance(row.get(key), str):
            try:
                row[key] = json_value(row[key].lower() if key == "resize_reference" else row[key])
            except ValueError as error:
                raise UserError(f"{key} is {row[key]!r}, expected JSON such as {example}") from error
    return checked_row({**row, "image": image})


def checked_row(row: Any) -> dict[str, Any]:
    """Return a row after checking its fields. Raises UserError for a wrong type, and for an invalid question."""
    if not isinstance(row, dict):
        raise UserError(f"expected a JSON object, such as {ROW}")
    for wrong, right in MISNAMED.items():
        if wrong in row and right not in row:
            raise UserError(f"unknown key {wrong!r}: rename it to {right!r}")
    if row.get("image") is None:
        raise UserError(f"the key 'image' is missing; expected a row such as {ROW}")
    for key, kind in FIELDS.items():
        if row.get(key) is not None and not isinstance(row[key], kind):
            raise UserError(f"{key} is a {type(row[key]).__name__}, expected a {kind.__name__}")
    if not row["image"]:
        raise UserError("image is empty, expected a path")
    checked(row.get("query"))
    return row
