"""How a model's answer may differ from the schema that it was sent, and still be read.

The schema is closed: it requests exactly these keys. An answer may have a key in another case or spelling, or a further
key. What was left out or read as something else is in ``notes``.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ModelWrapValidatorHandler, PrivateAttr, model_validator

from agenticiqa.signatures.types import Strict
from agenticiqa.signatures.vocabulary import closest

LONGEST_SHOWN = 40  # characters of an unknown key in a note
SIMILAR_KEY = 0.8  # of difflib's ratio: "tool_execute" is tool_execution, "score" is nothing
_NOTHING = re.compile(
    r"(?:no(?:ne|thing)?(?:\s+(?:visible|noticeable|obvious|apparent))?(?:\s+distortions?)?|null|n/?a|)", re.IGNORECASE
)
REASONS = dict.fromkeys(("reasoning", "reason", "explanation", "rationale", "justification"), "quality_reasoning")


class ModelAnswer(Strict):
    """The base of what a model writes. ``other_names`` maps further names of a key, in snake case, to the key.

    ``set_by_rules`` are keys, in snake case, that it is not asked for and may write: they are left out without a note.
    """

    other_names: ClassVar[Mapping[str, str]] = {}
    set_by_rules: ClassVar[frozenset[str]] = frozenset()
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> list[str]:
        """What was left out of the answer or read as something else, one sentence each, the nested ones included."""
        nested = (note for value in self.__dict__.values() for note in _notes_in(value))
        return list(dict.fromkeys([*self._notes, *nested]))

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Return the answer under its own keys, completed where its meaning is clear. For subclasses."""
        return written

    @classmethod
    def checked(cls, answer: Any, surplus: Mapping[str, Any]) -> list[str]:
        """Return what a reader has to know of an answer that is accepted, one sentence each. For subclasses.

        Raises ValueError where an unknown key, in snake case, contradicts the answer.
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
        return answer


def names_in(value: Any) -> Any:
    """A list of names, where one alone or "none" was written; anything else as it is."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return value
    return [name for name in names if not (isinstance(name, str) and _NOTHING.fullmatch(name.strip()))]


def rows_by_region(key: str) -> BeforeValidator:
    """A validator that reads the documents' mapping by region as rows with this key; anything else as it is."""

    def as_rows(value: Any) -> Any:
        by_region = isinstance(value, Mapping)
        return [{"region": region, key: item} for region, item in value.items()] if by_region else value

    return BeforeValidator(as_rows)


def wire_names(model: type[BaseModel]) -> list[str]:
    """The JSON keys of a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def snake(name: object) -> str:
    """A key in snake case: "Quality Level", "qualityLevel" and "**quality-level**" are quality_level."""
    text = unicodedata.normalize("NFKC", str(name))
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")


def keys_found(written: Mapping[Any, Any], model: type[BaseModel], *, by_other_names: bool = False) -> int:
    """How many of the model's keys are there, in any case, and if so wanted under another of their names."""
    others = getattr(model, "other_names", {}) if by_other_names else {}
    found = {others.get(snake(key), snake(key)) for key in written}
    return len(found & {snake(name) for name in wire_names(model)})


def under_own_keys(
    written: Mapping[Any, Any], model: type[ModelAnswer]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """What was written under the model's own keys, what under unknown ones, and a note for each key that was changed.

    Raises ValueError where two keys that mean the same have different values.
    """
    names = {snake(name): name for name in wire_names(model)}
    found: dict[str, Any] = {}
    for key, value in written.items():
        name = names.get(snake(key))
        if name in found and found[name] != value:
            raise ValueError(f"{name} is there twice, with different values")
        if name is not None:
            found[name] = value
    surplus: dict[str, Any] = {}
    notes = []
    for key in [key for key in written if snake(key) not in names]:
        spelled, shown = snake(key), repr(str(key)[:LONGEST_SHOWN])
        missing = [name for name in names.values() if name not in found]
        other = model.other_names.get(spelled)
        name = other if other in missing else closest(spelled, missing, SIMILAR_KEY)
        if name is not None:
            found[name] = written[key]
            notes.append(f"the key {shown} was read as {name}")
        else:
            surplus[spelled] = written[key]
            if spelled not in model.set_by_rules:
                notes.append(f"the unknown key {shown} was left out")
    return found, surplus, notes


def _notes_in(value: Any) -> list[str]:
    if isinstance(value, ModelAnswer):
        return value.notes
    return [note for item in value for note in _notes_in(item)] if isinstance(value, list) else []
