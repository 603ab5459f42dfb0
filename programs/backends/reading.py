"""A model's answer, read from what it wrote: the object may be bare or wrapped, in loose JSON, or a list of keys.

Used for the text of every adapter. Only a whole object is read, and only one that can mean one thing: of two different
answers none is taken, unless the words between them say that the later one replaces the earlier.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, get_args, get_origin

import dspy
from pydantic import BaseModel, ValidationError

from agenticiqa.programs.backends.bounds import too_much
from agenticiqa.programs.backends.cleaning import IN_THOUGHTS, UNFINISHED, cut_short, ends_in_thoughts, without_thoughts
from agenticiqa.programs.backends.key_lines import key_lines
from agenticiqa.programs.backends.loose_json import Decoded, TwoValues, decoded_values, plain_characters
from agenticiqa.signatures.answers import ModelAnswer, exact_keys, known_keys, snake, under_own_keys

DEEPEST = 4  # wrappers around an answer, a string with JSON in it counted as one
UNREAD = "the answer was not a JSON object"

# What the parsers raise for what they cannot read: Unreadable and TwoValues are ValueErrors, too, and so is a date of
# YAML that is none; an integer may be too large for a float.
PARSERS_RAISE = (ValueError, OverflowError, RecursionError)

_REPLACES = re.compile(
    r"\b(correct|revis|updat|actually|wait\b|instead|final|improv|fixed|adjust|reconsider|replac)", re.IGNORECASE
)
# A small model that goes on with a question of its own, or that answers once for each image or option.
_ANOTHER_QUESTION = re.compile(r"\b(question|user|input|image|picture|option|example|query)\b", re.IGNORECASE)
_CARRIES_JSON = re.compile(r"[{\[]\s*[\"'{\\]")


class Unreadable(ValueError):
    """The text is no answer; the message tells the model what to change."""


@dataclass(frozen=True)
class _Found:
    """An object that has the answer's keys, and where it stands in the text."""

    fields: Mapping[Any, Any]
    start: int
    end: int


def read_fields(text: str, signature: type[dspy.Signature]) -> dict[str, Any] | None:
    """The output fields of a signature with one typed answer; ``None`` for any other signature.

    A field of text beside the typed one (such as the reasoning of a ``ChainOfThought``) is empty where it was left out.
    Raises Unreadable, from the ValidationError if there is one; for a text that is too much to be read also where the
    signature is another one, so that no other parser gets it.
    """
    require_readable(text)
    kinds = {name: field.annotation for name, field in signature.output_fields.items()}
    typed = [name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    if len(typed) != 1 or any(kind is not str for name, kind in kinds.items() if name not in typed):
        return None
    (name,) = typed
    answer = read_answer(text, name, kinds[name])
    beside = [name for name in kinds if name not in typed]
    return {**{name: _text_beside(text, name) for name in beside}, name: answer}


def read_answer(text: str, field: str, model: type[BaseModel]) -> BaseModel:
    """The answer in a text, as the model class of the output field. Raises Unreadable."""
    try:
        return validated(written_answer(text, field, model), model)
    except Unreadable:
        raise
    except TwoValues as error:
        raise Unreadable(str(error)) from error
    except PARSERS_RAISE as error:
        raise Unreadable(UNREAD) from error


def require_readable(text: str) -> None:
    """Raises Unreadable for a text that is too long, too deep or too large a number; see ``bounds``."""
    if why := too_much(text):
        raise Unreadable(why)


def written_answer(text: str, field: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """The last object of the text that has the answer's keys, not yet validated. Raises Unreadable or TwoValues."""
    require_readable(text)
    text = without_thoughts(text)
    if not text.strip():
        raise Unreadable("the answer was empty")
    for variant in dict.fromkeys((text, plain_characters(text))):
        values = list(decoded_values(variant))
        found = [each for value in values if (each := _found(value, field, model))]
        if found and ends_in_thoughts(variant) and found[-1].end < len(variant.rstrip("` \n")):
            raise Unreadable(IN_THOUGHTS)
        if found:
            return _the_one(found, variant, model)
        lines = key_lines(variant, model)
        if lines is not None:
            return lines
    if cut_short(text):
        raise Unreadable(IN_THOUGHTS if ends_in_thoughts(text) else UNFINISHED)
    objects = [value.value for value in values if isinstance(value.value, Mapping)]
    if not objects:
        raise Unreadable(UNREAD)
    if any(field in each for each in objects):
        raise Unreadable("the answer: Input should be an object with the keys that were asked for")
    begun = [each for each in map(partial(_begun, model=model), objects) if each]
    if begun:
        return begun[-1]
    raise Unreadable(f"the JSON object has no field {field!r}")


def begun_answer(text: str, field: str, model: type[ModelAnswer]) -> dict[str, Any] | None:
    """What an answer that was rejected has under the model's keys, as written; ``None`` where that is unclear."""
    fields: Mapping[Any, Any] | None
    if too_much(text):
        return None
    try:
        fields = written_answer(text, field, model)
    except PARSERS_RAISE:
        try:
            fields = None if cut_short(text) else key_lines(without_thoughts(text), model, least=1)
        except PARSERS_RAISE:
            return None
    if fields is None:
        return None
    with suppress(ValueError):
        return under_own_keys(fields, model)[0]
    return None


def validated(fields: Mapping[Any, Any], model: type[BaseModel]) -> BaseModel:
    """The object as the model class. Raises Unreadable, which says for each key what is wrong."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise Unreadable(faults(error)) from error


def faults(error: ValidationError) -> str:
    """What is wrong with each field, in one line."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _the_one(found: list[_Found], text: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """The last one; raises Unreadable when an earlier one is a valid answer too, and another."""
    *earlier, last = found
    between = text[earlier[-1].end : last.start] if earlier else ""
    if earlier and (not _REPLACES.search(between) or _ANOTHER_QUESTION.search(between)):
        answer = validated(last.fields, model)
        for each in earlier:
            try:
                other = validated(each.fields, model)
            except Unreadable:
                continue
            if _verdict(other) != _verdict(answer):
                raise Unreadable("there are two different answers; give exactly one JSON object")
    return last.fields


def _verdict(answer: BaseModel) -> dict[str, Any]:
    """The answer without its reason."""
    return answer.model_dump(exclude={"quality_reasoning", "replan_reason"})


def _found(value: Decoded, field: str, model: type[BaseModel]) -> _Found | None:
    fields = _shaped(value.value, field, model)
    return None if fields is None else _Found(fields, value.start, value.end)


def _shaped(value: Any, field: str, model: type[BaseModel], depth: int = 0) -> Mapping[Any, Any] | None:
    """The object with the model's keys inside a value; ``None`` without one. Raises TwoValues for several."""
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        inside = list(decoded_values(value)) if _CARRIES_JSON.search(value) and not too_much(value) else []
        return _only(_shaped(each.value, field, model, depth + 1) for each in inside)
    if isinstance(value, list):
        return _records(value, model) or _only(_shaped(each, field, model, depth + 1) for each in value)
    if not isinstance(value, Mapping):
        return None
    outer = [item for key, item in value.items() if snake(key) == field]
    if outer and isinstance(outer[0], Mapping | list | str):
        inner = _shaped(outer[0], field, model, depth + 1)
        if inner is None and isinstance(outer[0], Mapping):
            return _by_region(outer[0], model) or outer[0]
        if inner is not None:
            return inner
    enough = ceil(len(model.model_fields) / 2)
    if exact_keys(value, model) >= enough:
        return value
    wrapped = _only(_shaped(item, field, model, depth + 1) for item in value.values() if _may_wrap(item))
    if wrapped is not None:
        return wrapped
    if known_keys(value, model) >= enough:
        return value
    return _records([value], model) or (_by_region(value, model) if depth == 0 else None)


def _begun(value: Mapping[Any, Any], model: type[BaseModel]) -> Mapping[Any, Any] | None:
    """An object with some of the keys, for the message that says which are missing."""
    candidates = [item for item in value.values() if isinstance(item, Mapping)] + [value]
    best = max(candidates, key=lambda each: exact_keys(each, model))
    return best if exact_keys(best, model) else None


def _may_wrap(item: Any) -> bool:
    return isinstance(item, Mapping | list | str)


def _only(candidates: Iterable[Mapping[Any, Any] | None]) -> Mapping[Any, Any] | None:
    """The one object among them, the same one twice included."""
    found = [each for each in candidates if each is not None]
    if any(each != found[0] for each in found[1:]):
        raise TwoValues("there are two different answers; give exactly one JSON object")
    return found[0] if found else None


def _rows_of(model: type[BaseModel]) -> tuple[str, type[BaseModel]] | None:
    """The name and the row of a model whose only field is a list of rows."""
    if len(model.model_fields) != 1:
        return None
    ((name, field),) = model.model_fields.items()
    (row,) = get_args(field.annotation) if get_origin(field.annotation) is list else (None,)
    return (name, row) if isinstance(row, type) and issubclass(row, BaseModel) else None


def _records(items: list[Any], model: type[BaseModel]) -> Mapping[Any, Any] | None:
    """A bare list of rows under the key that it should have."""
    rows = _rows_of(model)
    if rows is None or not items or not all(isinstance(item, Mapping) for item in items):
        return None
    name, row = rows
    about = next(iter(row.model_fields))  # what a row is about stands in its first field
    fits = all(about in map(snake, item) and known_keys(item, row) > 1 for item in items)
    return {name: items} if fits else None


def _by_region(value: Mapping[Any, Any], model: type[BaseModel]) -> Mapping[Any, Any] | None:
    """The documents' mapping by region without its key, where it is a valid answer as it stands."""
    rows = _rows_of(model)
    if rows is None or not value:
        return None
    try:
        model.model_validate({rows[0]: value})
    except ValidationError:
        return None
    return {rows[0]: value}


def _text_beside(text: str, name: str) -> str:
    for each in decoded_values(without_thoughts(text)):
        if isinstance(each.value, Mapping) and isinstance(each.value.get(name), str):
            return str(each.value[name])
    return ""
