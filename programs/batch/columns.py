"""Convert rows of results to columns with types, as Parquet and a DataFrame have them, and back."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from agenticiqa.programs.result_row import AssessedRow, Row

if TYPE_CHECKING:
    from pandas import DataFrame

_ENDS = {  # the probability of the interval of each column, and the index of its end
    "score_low_80": ("80", 0),
    "score_high_80": ("80", 1),
    "score_low_95": ("95", 0),
    "score_high_95": ("95", 1),
}
_SHARES = {f"probability_{level}": str(level) for level in range(1, 6)}
_FLATTENED = ("score_interval", "quality_probs")
OF_A_RUN = ("run_fingerprint", "fusion", "more")
ANSWER = "final_answer"  # text, or the score as text
_ARROW = {"string": pa.string(), "number": pa.float64(), "integer": pa.int32(), "boolean": pa.bool_()}
_ROW: dict[str, Any] = AssessedRow.model_json_schema(mode="serialization")


def _type_of(schema: Mapping[str, Any]) -> pa.DataType | None:
    """Return the type of a field by its JSON schema: a value, a list, or a struct; ``None`` for other content."""
    schema = _only(schema)
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema["items"]]
        item = _type_of(items[0])
        return None if item is None or any(other != items[0] for other in items) else pa.list_(item)
    if schema.get("type") == "object" and schema.get("additionalProperties") is False:
        members = {name: _type_of(member) for name, member in schema["properties"].items()}
        return None if None in members.values() else pa.struct(list(members.items()))
    return _ARROW.get(schema.get("type", ""))


def _only(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is not null; an empty one for several kinds of values."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind != {"type": "null"}]
    if len(kinds) > 1:
        return {}
    only: Mapping[str, Any] = kinds[0]
    named: Mapping[str, Any] = _ROW["$defs"].get(only.get("$ref", "").rpartition("/")[2], only)
    return named


# The type of each column; ``None`` for one with JSON text.
_COLUMNS = {name: _type_of(field) for name, field in _ROW["properties"].items() if name not in _FLATTENED} | {
    ANSWER: pa.string(),
    "run_fingerprint": pa.string(),
    "error": pa.string(),
    "fusion": None,
}
# The members of each struct that a row need not have.
_OPTIONAL = {
    name: _only(field)["properties"].keys() - {*_only(field).get("required", ())}
    for name, field in _ROW["properties"].items()
    if isinstance(_COLUMNS.get(name), pa.StructType)
}
_PLAIN = tuple(name for name, type_ in _COLUMNS.items() if type_)
_AS_JSON = tuple(name for name, type_ in _COLUMNS.items() if not type_)

TYPED = pa.schema(
    [
        *(pa.field(name, type_ or pa.string()) for name, type_ in _COLUMNS.items()),
        *(pa.field(name, pa.float64()) for name in (*_ENDS, *_SHARES)),
        pa.field("more", pa.string()),  # JSON of the keys of a row without a column
    ]
)


def columns_of(row: Mapping[str, Any]) -> Row:
    """Return a row of results as its columns. Raises ValueError for NaN or infinity, as JSON lines do."""
    flat: Row = {name: row.get(name) for name in _PLAIN}
    ends, shares = row.get("score_interval") or {}, row.get("quality_probs") or {}
    flat |= {column: ends[share][end] if ends else None for column, (share, end) in _ENDS.items()}
    flat |= {column: shares.get(level) for column, level in _SHARES.items()}
    flat |= {name: None if row.get(name) is None else _text(row[name]) for name in _AS_JSON}
    more = {name: value for name, value in row.items() if name not in _COLUMNS and name not in _FLATTENED}
    answer = row.get(ANSWER)
    flat[ANSWER] = None if answer is None else str(answer)
    if answer != _answer(flat):  # a number that is not the score, or its digits as a text
        more[ANSWER] = answer
    flat["more"] = _text(more) if more else None
    return flat


def row_of(columns: Mapping[str, Any]) -> Row:
    """Return the row that ``columns_of`` flattened; for a failed image, without keys that are ``None``."""
    row: Row = {name: value_of(name, columns[name]) for name in (*_PLAIN, *_AS_JSON)}
    row[ANSWER] = _answer(columns)
    ends = [columns[column] for column in _ENDS]
    row["score_interval"] = None if ends[0] is None else {"80": ends[:2], "95": ends[2:]}
    shares = {level: columns[column] for column, level in _SHARES.items() if columns[column] is not None}
    row["quality_probs"] = shares or None
    optional = row.keys() if columns["error"] is not None else {"error", "fusion"}
    row = {name: value for name, value in row.items() if value is not None or name not in optional}
    return row | (orjson.loads(columns["more"]) if columns["more"] else {})


def frame_of(rows: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """Return a DataFrame of pandas with a line for each row of ``columns_of``, without what only a run needs."""
    table = pa.Table.from_pylist([*rows], TYPED)
    frame: DataFrame = table.drop_columns([*OF_A_RUN]).to_pandas()
    return frame


def _answer(columns: Mapping[str, Any]) -> str | float | None:
    """Return the final answer of a row in its columns: the score, or a text."""
    answer: str | None = columns[ANSWER]
    score: float | None = columns["quality_score"]
    return score if answer == str(score) else answer


def value_of(column: str, value: Any) -> Any:
    """Return the value of a row that a column other than the answer has."""
    if value is None:
        return None
    if column in _AS_JSON:
        return orjson.loads(value)
    if column in _OPTIONAL:
        return {name: member for name, member in value.items() if member is not None or name not in _OPTIONAL[column]}
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
