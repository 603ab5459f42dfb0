"""Check JSON schemas against each provider's rules for structured output; the servers refuse others with status 400.

* OpenAI, strict: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
* Anthropic: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (JSON Schema limitations); the
  words of the errors as reported in agentjido/req_llm#707 and ghostlobster/memorize-everything#93
* Gemini: https://ai.google.dev/api/generate-content#GenerationConfig (``responseJsonSchema``)
"""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

OPENAI_KEYWORDS = {
    *("$defs", "$ref", "additionalProperties", "anyOf", "const", "definitions", "description", "enum", "format"),
    *("exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf"),
    *("pattern", "properties", "required", "title", "type"),
}
ANTHROPIC_REFUSES = {
    "array": ("contains", "maxItems", "uniqueItems"),
    "integer": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "number": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "object": ("maxProperties", "minProperties", "patternProperties"),
    "string": ("maxLength", "minLength"),
}


def openai_strict(schema: Schema) -> str | None:
    """Return the complaint of OpenAI's strict mode about a schema."""
    if schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'"
    for where, part in subschemas(schema):
        siblings = set(part) - {"$ref", "$defs", "definitions"}
        if "$ref" in part and siblings:
            return f"context={where}, $ref cannot have keywords {siblings}"
        if unknown := set(part) - OPENAI_KEYWORDS:
            return f"In context={where}, {sorted(unknown)[0]!r} is not permitted"
        if part.get("type") == "object":
            if part.get("additionalProperties") is not False:
                return f"In context={where}, 'additionalProperties' is required to be supplied and to be false"
            if set(part.get("required", ())) != set(part.get("properties", ())):
                return f"In context={where}, 'required' is required to be supplied and to be an array of every key"
    return None


def anthropic(schema: Schema) -> str | None:
    """Return Anthropic's complaint about a schema."""
    for _, part in subschemas(schema):
        kind = str(part.get("type"))
        if wrong := sorted(set(ANTHROPIC_REFUSES.get(kind, ())) & set(part)):
            which = f"property '{wrong[0]}' is" if len(wrong) == 1 else f"properties {', '.join(wrong)} are"
            return f"For '{kind}' type, {which} not supported"
        if kind == "array" and part.get("minItems", 0) not in (0, 1):
            return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        if kind == "object" and part.get("additionalProperties") is not False:
            return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    return None


def gemini(schema: Schema) -> str | None:
    """Return Gemini's complaint about a schema; unknown keywords are ignored."""
    for where, part in subschemas(schema):
        if "$ref" in part and any(not name.startswith("$") for name in part):
            return f"$ref must not be set together with other fields at {where}"
    return None


def subschemas(schema: Schema, where: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield a schema and all schemas in it, each with its place."""
    yield where, schema
    for name in ("properties", "$defs", "definitions"):
        for key, inner in schema.get(name, {}).items():
            yield from subschemas(inner, (*where, name, key))
    for inner in schema.get("anyOf", ()):
        yield from subschemas(inner, (*where, "anyOf"))
    if isinstance(schema.get("items"), Mapping):
        yield from subschemas(schema["items"], (*where, "items"))
