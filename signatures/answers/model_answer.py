"""Accept a model's answer that differs from the requested schema in the spelling or the number of its keys.

The schema is closed: it requests exactly these keys. An answer may have a key in another case or spelling, or a further
key. ``notes`` reports what was omitted or reinterpreted.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ModelWrapValidatorHandler, PrivateAttr, model_validator

from agenticiqa.signatures.types import Strict
from agenticiqa.signatures.vocabulary import closest

LONGEST_SHOWN = 40  # characters of an unknown key in a note
SIMILAR_KEY = 0.8  # minimum of difflib's ratio: "tool_execute" means tool_execution, "score" no key
_NOTHING = re.compile(
    r"(?:no(?:ne|thing)?(?:\s+(?:visible|noticeable|obvious|apparent))?(?:\s+distortions?)?|null|n/?a|)", re.IGNORECASE
)
REASONS = dict.fromkeys(("reasoning", "reason", "explanation", "rationale", "justification"), "quality_reasoning")


class ModelAnswer(Strict):
    """The base class of model answers. ``other_names`` maps further names of a key, in snake case, to the key.

    ``set_by_rules`` are keys, in snake case, that are not requested: they are omitted without a note.
    """

    other_names: ClassVar[Mapping[str, str]] = {}
    set_by_rules: ClassVar[frozenset[str]] = frozenset()
    _notes: tuple[str, ...] = PrivateAttr(default=())
    _other_keys: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def other_keys(self) -> frozenset[str]:
        """The keys that the model wrote and that are not the answer's own, in snake case."""
        return self._other_keys

    @property
    def notes(self) -> list[str]:
        """The omitted or reinterpreted parts of the answer, one sentence each, including those of nested answers."""
        nested = (note for value in self.__dict__.values() for note in _notes_in(value))
        return list(dict.fromkeys([*self._notes, *nested]))

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Return the answer under its own keys, completed where its meaning is clear. For subclasses."""
        return written

    @classmethod
    def checked(cls, answer: Any, surplus: Mapping[str, Any]) -> list[str]:
        """Return notes for the reader of an accepted answer, one sentence each. For subclasses.

        Raises ValueError if an unknown key, in snake case, contradicts the answer.
        """
        return []

    @model_validator(mode="wrap")
    @classmethod
    def _as_written(cls, value: Any, handler: ModelWrapValidatorHandler["ModelAnswer"]) -> "ModelAnswer":
        if not isinstance(value, Mapping):
            return handler(value)
        written, surplus, notes = under_own_keys(value, cls)
        answer = handler(cls.prepared(written))
        answer._notes = (*notes, *cls.checked(answer, surplus))
        answer._other_keys = frozenset(map(snake, value)) - set(map(snake, wire_names(cls)))
        return answer


def names_in(value: Any) -> Any:
    """Return a list of names for a single name or "none"; other values are returned unchanged."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return value
    return [name for name in names if not (isinstance(name, str) and _NOTHING.fullmatch(name.strip()))]


def rows_by_region(key: str) -> BeforeValidator:
    """Return a validator that converts the specification's mapping by region to rows with this key."""

    def as_rows(value: Any) -> Any:
        by_region = isinstance(value, Mapping)
        return [{"region": region, key: item} for region, item in value.items()] if by_region else value

    return BeforeValidator(as_rows)


def wire_names(model: type[BaseModel]) -> list[str]:
    """Return the JSON keys of a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def snake(name: object) -> str:
    """Return a key in snake case: "Quality Level", "qualityLevel" and "**quality-level**" become quality_level."""
    text = unicodedata.normalize("NFKC", str(name))
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")


def keys_found(written: Mapping[Any, Any], model: type[BaseModel], *, by_other_names: bool = False) -> int:
    """Return how many of the model's keys are present, in any case, and optionally under other names."""
    others = getattr(model, "other_names", {}) if by_other_names else {}
    keys = {others.get(snake(key), snake(key)) for key in written}
    return len(keys & {snake(name) for name in wire_names(model)})


def under_own_keys(
    written: Mapping[Any, Any], model: type[ModelAnswer]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the values under the model's own keys, those under unknown keys, and a note for each changed key.

    Raises ValueError if two keys with the same meaning have different values.
    """
    names = {snake(name): name for name in wire_names(model)}
    values: dict[str, Any] = {}
    for key, value in written.items():
        name = names.get(snake(key))
        if name in values and values[name] != value:
            raise ValueError(f"{name} is there twice, with different values")
        if name is not None:
            values[name] = value
    surplus: dict[str, Any] = {}
    notes = []
    for key in [key for key in written if snake(key) not in names]:
        spelled, label = snake(key), repr(str(key)[:LONGEST_SHOWN])
        missing = [name for name in names.values() if name not in values]
        other = model.other_names.get(spelled)
        name = other if other in missing else closest(spelled, missing, SIMILAR_KEY)
        if name is not None:
            values[name] = written[key]
            notes.append(f"the key {label} was read as {name}")
        else:
            surplus[spelled] = written[key]
            if spelled not in model.set_by_rules:
                notes.append(f"the unknown key {label} was left out")
    return values, surplus, notes


def _notes_in(value: Any) -> list[str]:
    if isinstance(value, ModelAnswer):
        return value.notes
    return [note for item in value for note in _notes_in(item)] if isinstance(value, list) else []
