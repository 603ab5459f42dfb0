"""Describe what the answer to one request must contain. The request's JSON schema and its check are made from this.

The schema has only keywords that the grammar builders of llama.cpp (Ollama, LM Studio) and xgrammar (vLLM, SGLang)
enforce. ``anyOf`` and ``$ref`` are not among them: some versions ignore them without an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from agenticiqa.signatures.harmless import harmless

Schema = dict[str, Any]

# Characters per token. English has 4; the number is low, so that an answer within the schema is rarely cut off.
PER_TOKEN = 2
BESIDE = 64  # tokens of blanks between the parts of an answer
LONGEST_NUMBER = 8  # characters


@dataclass(frozen=True)
class Requested:
    """What the answer to one request must contain, made from the request's inputs.

    Attributes:
        rows: By the key of a list, its rows in order: for each row, the values that identify it, such as
            ``{"distortion_set": [{"region": "sky"}]}``. The list has each of these rows once, and no other.
        choices: By the key of a text or of a list of texts, the texts to choose from. A list without any must be empty.
    """

    rows: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def bounded(self, schema: Schema) -> Schema:
        """Return the schema of a signature's outputs with these rows and choices."""
        changed = {key: self._within(key, value) for key, value in schema.get("properties", {}).items()}
        return {**schema, "properties": changed} if changed else schema

    def settle(self, answer: BaseModel) -> list[str]:
        """Spell the names in an answer as requested, and return what is wrong with it, one sentence each.

        Case and blanks do not matter, and neither does the order of rows. Rows that are there twice are left once.
        """
        wrong: list[str] = []
        for key, wanted in self.rows.items():
            if hasattr(answer, key):
                wrong += _settle_rows(answer, key, wanted)
        for parent in (answer, *_rows_of(answer)):
            for key in self.choices.keys() & type(parent).model_fields.keys():
                wrong += _settle_choice(parent, key, self.choices[key])
        return wrong

    def _within(self, key: str, schema: Schema) -> Schema:
        """Return the schema under a key, with its choices and rows."""
        if key in self.choices:
            return _one_of(schema, self.choices[key])
        if key in self.rows:
            rows = [self._row(schema["items"], wanted) for wanted in self.rows[key]]
            return {"type": "array", "prefixItems": rows, "minItems": len(rows), "maxItems": len(rows)}
        if "items" in schema:
            return {**schema, "items": self.bounded(schema["items"])}
        return self.bounded(schema)

    def _row(self, schema: Schema, wanted: Mapping[str, str]) -> Schema:
        bounded = self.bounded(schema)
        named = {key: _one_of(bounded["properties"][key], [value]) for key, value in wanted.items()}
        return {**bounded, "properties": {**bounded["properties"], **named}}


def most_tokens(schema: Schema) -> int | None:
    """Return an upper bound of the tokens of an answer within a schema; ``None`` if the schema does not bound it."""
    characters = _most_characters(schema)
    return None if characters is None else characters // PER_TOKEN + BESIDE


def _most_characters(schema: Schema) -> int | None:
    if "enum" in schema:
        return max(len(str(value)) for value in schema["enum"]) + 2
    match schema.get("type"):
        case "object":
            parts = [_most_characters(value) for value in schema.get("properties", {}).values()]
            names = sum(len(key) + 6 for key in schema.get("properties", {}))
            return None if None in parts else names + sum(filter(None, parts)) + 2
        case "array" if "prefixItems" in schema:
            parts = [_most_characters(item) for item in schema["prefixItems"]]
            return None if None in parts else sum(filter(None, parts)) + 2 * len(parts) + 2
        case "array":
            most, item = schema.get("maxItems"), _most_characters(schema["items"])
            return None if most is None or (item is None and most) else int(most) * ((item or 0) + 2) + 2
        case "string":
            most = schema.get("maxLength")
            return None if most is None else int(most) + 2
        case "number" | "integer" | "boolean":
            return LONGEST_NUMBER
    return None


def _one_of(schema: Schema, values: Sequence[str]) -> Schema:
    named = [str(harmless(value)) for value in values]  # the names as they stand in the prompt
    if schema.get("type") != "array":
        return {"type": "string", "enum": named}
    if not named:
        return {**schema, "maxItems": 0}
    return {**schema, "items": {"type": "string", "enum": named}, "maxItems": min(schema["maxItems"], len(named))}


def _rows_of(answer: BaseModel) -> Iterator[BaseModel]:
    for _, value in answer:
        if isinstance(value, list):
            yield from (row for row in value if isinstance(row, BaseModel))


def _settle_rows(answer: BaseModel, key: str, wanted: Sequence[Mapping[str, str]]) -> list[str]:
    names = list(wanted[0]) if wanted else []
    known = {name: [row[name] for row in wanted] for name in names}
    rows = getattr(answer, key)
    for row in rows:
        for name in names:
            setattr(row, name, spelled_as(getattr(row, name), known[name]))
    once: list[BaseModel] = []
    for row in rows:
        if row not in once:
            once.append(row)
    setattr(answer, key, once)
    found, expected = [_identity(row, names) for row in once], [tuple(row.values()) for row in wanted]
    wrong = []
    if missing := [row for row in expected if row not in found]:
        wrong.append(f"{key} lacks {_listed(names, missing)}")
    if surplus := [row for row in dict.fromkeys(found) if row not in expected]:
        wrong.append(f"{key} must not have {_listed(names, surplus)}")
    if twice := [row for row in dict.fromkeys(found) if found.count(row) > 1]:
        wrong.append(f"{key} has {_listed(names, twice)} more than once; give one row for each")
    return wrong


def _settle_choice(parent: BaseModel, key: str, choices: Sequence[str]) -> list[str]:
    value = getattr(parent, key)
    if isinstance(value, list):
        setattr(parent, key, [spelled_as(name, choices) for name in value])
    else:
        setattr(parent, key, spelled_as(value, choices))
    settled = getattr(parent, key)
    unknown = [name for name in (settled if isinstance(settled, list) else [settled]) if name not in choices]
    if not unknown:
        return []
    return [f"{key} has {', '.join(map(repr, unknown))}; it must be one of: {', '.join(choices) or 'none'}"]


def _identity(row: BaseModel, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(getattr(row, name) for name in names)


def _listed(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    return ", ".join("/".join(row) for row in rows) + f" ({'/'.join(names)})"


def spelled_as(name: str, known: Sequence[str]) -> str:
    """Return the known name that differs only in case and blanks, or the name unchanged."""

    def folded(text: str) -> str:
        return "".join(str(harmless(text)).casefold().split())  # the name as it stands in the prompt

    return {folded(each): each for each in known}.get(folded(name), name)
