"""Reduce a JSON schema: remove what servers reject and what a model need not read."""

from collections.abc import Callable
from typing import Any

BOUNDS = {f"{which}{what}" for which in ("min", "max") for what in ("Items", "Length", "imum")} | {
    "exclusiveMinimum",
    "exclusiveMaximum",
}
NAMES = {"$defs", "title", "description"}
NAMED = {"properties", "$defs"}  # the keys inside of these are our names, not keywords

Schema = dict[str, Any]


def without_bounds(schema: Schema) -> Schema:
    """Return a schema without bounds on numbers and lengths, for servers that reject them; answers are validated."""
    return _each(schema, lambda node: {key: value for key, value in node.items() if key not in BOUNDS})


def without_names(schema: Schema) -> Schema:
    """Return a schema with its definitions in their places, and without titles and descriptions."""
    definitions = schema.get("$defs", {})

    def change(node: Schema) -> Schema:
        if "$ref" in node:
            return _each(definitions[node["$ref"].rpartition("/")[2]], change)
        return {key: value for key, value in node.items() if key not in NAMES}

    return _each(schema, change)


def _each(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return the schema with ``change`` made to each schema inside it, and then to itself."""
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
