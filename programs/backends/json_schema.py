"""Reduce a JSON schema: remove parts that servers reject or that a model does not need."""

from collections.abc import Callable, Collection
from typing import Any

LENGTHS = frozenset({"minLength", "maxLength"})
BOUNDS = LENGTHS | {"minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
NAMES = {"$defs", "title", "description"}
NAMED = {"properties", "$defs"}  # the keys inside these are names of fields and types, not keywords

Schema = dict[str, Any]


def without_keywords(schema: Schema, refused: Collection[str]) -> Schema:
    """Return a schema without keywords that a server refuses; answers are validated."""
    return _each(schema, lambda node: {key: value for key, value in node.items() if key not in refused})


def without_names(schema: Schema) -> Schema:
    """Return a schema with its definitions inserted where they are used, without titles and descriptions."""
    definitions = schema.get("$defs", {})

    def change(node: Schema) -> Schema:
        if "$ref" in node:
            return _each(definitions[node["$ref"].rpartition("/")[2]], change)
        return {key: value for key, value in node.items() if key not in NAMES}

    return _each(schema, change)


def _each(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return the schema after ``change`` is applied to each schema inside it, and then to itself."""
    if isinstance(schema, list):
        return [_each(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            key: {name: _each(inner, change) for name, inner in value.items()}
            if key in NAMED and isinstance(value, dict)
            else _each(value, change)
            for key, value in schema.items()
        }
    )
