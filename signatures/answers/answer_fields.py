"""Read a model's answer: a JSON object, strict or loose, bare or wrapped.

Used for the text of every adapter. Only a complete and unambiguous object is read. Two different answers are refused,
unless the words between them say that the later one replaces the earlier.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

import dspy
from pydantic import BaseModel, ValidationError

from agenticiqa.signatures.answers.json_text import (
    JsonValue,
    Unreadable,
    cut_short,
    ends_in_thoughts,
    in_plain_marks,
    json_values,
    too_much,
    without_thoughts,
)
from agenticiqa.signatures.answers.model_answer import REASONS, ModelAnswer, keys_found, snake, under_own_keys

MOST_WRAPPERS = 4  # levels around an answer; a string that contains JSON counts as one
UNREAD = "the answer was not a JSON object"
UNFINISHED = "the JSON object is not complete"
IN_THOUGHTS = "the answer ends inside its reasoning, before the JSON object"
TWO_ANSWERS = "there are two different answers; give exactly one JSON object"
# Exceptions of the parsers: an invalid date in YAML is a ValueError, and an integer may be too large for a float.
PARSERS_RAISE = (ValueError, OverflowError, RecursionError)

_REPLACES = re.compile(
    r"\b(correct|revis|updat|actually|wait\b|instead|final|improv|fixed|adjust|reconsider|replac)", re.IGNORECASE
)
# A small model may continue with another question, or answer once for each image or option.
_ANOTHER_QUESTION = re.compile(r"\b(question|user|input|image|picture|option|example|query)\b", re.IGNORECASE)
_PAIR = re.compile(r'"(\w+)"\s*+:\s*+"((?:[^"\\]|\\.)*+)("?)')
_CARRIES_JSON = re.compile(r"[{\[]\s*[\"'{\\]")


def read_fields(text: str, signature: type[dspy.Signature]) -> dict[str, Any] | None:
    """Return the output fields of a signature with one typed answer; ``None`` for any other signature.

    A text field beside the typed one (such as the reasoning of a ``ChainOfThought``) is empty if it was omitted. Raises
    Unreadable, from the ValidationError if there is one. A text beyond the limits raises it for every signature, so
    that no other parser gets it.
    """
    if why := too_much(text):
        raise Unreadable(why)
    kinds = {name: field.annotation for name, field in signature.output_fields.items()}
    typed = [name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    if len(typed) != 1 or any(kind is not str for name, kind in kinds.items() if name not in typed):
        return None
    answer = read_answer(text, typed[0], kinds[typed[0]])
    objects = [
        item.value for item in json_values(in_plain_marks(without_thoughts(text))) if isinstance(item.value, Mapping)
    ]

    def beside(name: str) -> str:
        return next((value[name] for value in objects if isinstance(value.get(name), str)), "")

    return {name: answer if name in typed else beside(name) for name in kinds}


def read_answer(text: str, field: str, model: type[BaseModel]) -> BaseModel:
    """Return the answer in a text, as the model class of the output field. Raises Unreadable."""
    try:
        return _validated(_written(text, field, model), model)
    except Unreadable:
        raise
    except PARSERS_RAISE as error:
        raise Unreadable(UNREAD) from error


def begun_answer(text: str, field: str, model: type[ModelAnswer]) -> dict[str, Any]:
    """Return the values of a rejected answer under the model's keys; ``{}`` if there are none or they are ambiguous.

    Of an answer that breaks off, these are the texts that are complete, and a reason that is not.
    """
    with suppress(*PARSERS_RAISE):
        return under_own_keys(_written(text, field, model), model)[0]
    with suppress(*PARSERS_RAISE):
        return under_own_keys(_texts_begun(text), model)[0]
    return {}


def _texts_begun(text: str) -> dict[str, str]:
    """Return the texts of one object that breaks off, by key; ``{}`` for any other text."""
    if too_much(text):
        return {}
    text = in_plain_marks(without_thoughts(text))
    if ends_in_thoughts(text) or not cut_short(text):
        return {}
    pairs = [(pair[1], pair[2], bool(pair[3])) for pair in _PAIR.finditer(text)]
    if len({key for key, _, _ in pairs}) < len(pairs):  # more than one object
        return {}
    reasons = {"quality_reasoning", *REASONS}
    return {key: _unescaped(value) for key, value, is_whole in pairs if is_whole or key in reasons}


def _unescaped(value: str) -> str:
    with suppress(ValueError):
        return str(json.loads(f'"{value}"'))
    return value


def faults(error: ValidationError) -> str:
    """Return the error of each field, in one line."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _written(text: str, field: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """Return the last object in the text with the answer's keys, not yet validated. Raises Unreadable."""
    if why := too_much(text):
        raise Unreadable(why)
    text = in_plain_marks(without_thoughts(text))
    if not text.strip():
        raise Unreadable("the answer was empty")
    values = list(json_values(text))
    answers = [
        JsonValue(_one_answer(inside), *at) for value, *at in values if (inside := _answers_in(value, field, model))
    ]
    if answers and ends_in_thoughts(text) and answers[-1].end < len(text.rstrip("` \n")):
        raise Unreadable(IN_THOUGHTS)
    if answers:
        return _last_answer(answers, text, model)
    if cut_short(text):
        raise Unreadable(IN_THOUGHTS if ends_in_thoughts(text) else UNFINISHED)
    objects = [item.value for item in values if isinstance(item.value, Mapping)]
    nested = [item for mapping in objects for item in (*mapping.values(), mapping) if isinstance(item, Mapping)]
    if begun := [item for item in nested if keys_found(item, model)]:
        return begun[-1]  # the validation reports the missing keys
    raise Unreadable(f"the JSON object has no field {field!r} with the keys asked for" if objects else UNREAD)


def _validated(fields: Mapping[Any, Any], model: type[BaseModel]) -> BaseModel:
    """Return the object as the model class. Raises Unreadable with the error of each key."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise Unreadable(faults(error)) from error


def _answers_in(value: Any, field: str, model: type[BaseModel], depth: int = 0) -> list[Mapping[Any, Any]]:
    """Return the objects inside a value that have at least half of the model's keys."""
    if depth > MOST_WRAPPERS:
        return []

    def inside(items: Iterable[Any]) -> list[Mapping[Any, Any]]:
        return [answer for item in items for answer in _answers_in(item, field, model, depth + 1)]

    if isinstance(value, str) and _CARRIES_JSON.search(value) and not too_much(value):
        return inside(item.value for item in json_values(value))
    if isinstance(value, list):
        return _rows(value, model) or inside(value)
    if not isinstance(value, Mapping):
        return []
    own = next((item for key, item in value.items() if snake(key) == field), None)
    if answers := inside([own]):
        return answers
    if isinstance(own, Mapping):
        return _rows(own, model) or [own]
    enough = ceil(len(model.model_fields) / 2)
    if keys_found(value, model) >= enough:
        return [value]
    wrapped = inside(value.values())
    is_answer = not wrapped and keys_found(value, model, by_other_names=True) >= enough
    if is_answer:
        return [value]
    return wrapped or (_rows(value, model) if depth == 0 else [])


def _rows(rows: Any, model: type[BaseModel]) -> list[Mapping[Any, Any]]:
    """Return bare rows, as Qwen-VL returns boxes, or a mapping by region, under the model's only key."""
    name, *others = model.model_fields
    with suppress(ValidationError):
        if rows and not others:
            model.model_validate({name: rows})
            return [{name: rows}]
    return []


def _last_answer(answers: Sequence[JsonValue], text: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """Return the last object; raises Unreadable if an earlier one is also valid and differs."""
    *earlier, last = answers
    between = text[earlier[-1].end : last.start] if earlier else ""
    if earlier and (not _REPLACES.search(between) or _ANOTHER_QUESTION.search(between)):
        verdicts = [_without_reason(last.value, model)]
        for answer in earlier:
            with suppress(Unreadable):
                verdicts.append(_without_reason(answer.value, model))
        _one_answer(verdicts)
    return last.value


def _without_reason(fields: Mapping[Any, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the answer without its reason."""
    return _validated(fields, model).model_dump(exclude={"quality_reasoning", "replan_reason"})


def _one_answer(answers: Sequence[Mapping[Any, Any]]) -> Mapping[Any, Any]:
    if any(answer != answers[0] for answer in answers[1:]):
        raise Unreadable(TWO_ANSWERS)
    return answers[0]
