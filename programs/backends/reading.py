"""A model's answer, read from what it wrote: the object may be bare or wrapped, in loose JSON, or a list of keys.

Used for the text of every adapter. Only a whole object is read, and only one that can mean one thing: of two different
answers none is taken, unless the words between them say that the later one replaces the earlier.
"""

import ast
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from math import ceil
from typing import Any, NamedTuple

import dspy
import json_repair
import yaml
from pydantic import BaseModel, ValidationError

from agenticiqa.configs.reading import yaml_value
from agenticiqa.signatures.answers import ModelAnswer, exact_keys, known_keys, snake, under_own_keys, wire_names

# No parser bounds its own time, so these are checked before any.
LONGEST = 64_000  # characters without the reasoning before the answer; eight times what 2,048 tokens make
LONGEST_WITH_THOUGHTS = 1_000_000
LONGEST_LOOSE = 20_000  # characters; repairing is slow
DEEPEST = 64  # brackets that are open at once
MOST_BRACKETS = 500  # opening ones; an answer about sixteen regions has less than 200
MOST_IN_PROSE = 100  # opening ones that open no JSON
MOST_DIGITS = 300  # of a number; a float has at most 309
MOST_WRAPPERS = 4  # around an answer, a string with JSON in it counted as one

UNREAD = "the answer was not a JSON object"
UNFINISHED = "the JSON object is not complete"
IN_THOUGHTS = "the answer ends inside its reasoning, before the JSON object"
TWO_ANSWERS = "there are two different answers; give exactly one JSON object"

_LONG_NUMBER = re.compile(rf"(?<![\d_])\d[\d_]{{{MOST_DIGITS}}}|0[xX][\da-fA-F_]{{{MOST_DIGITS * 5 // 6}}}")
_REPLACES = re.compile(
    r"\b(correct|revis|updat|actually|wait\b|instead|final|improv|fixed|adjust|reconsider|replac)", re.IGNORECASE
)
# A small model that goes on with a question of its own, or that answers once for each image or option.
_ANOTHER_QUESTION = re.compile(r"\b(question|user|input|image|picture|option|example|query)\b", re.IGNORECASE)
_OPENING = re.compile(r"\{|\[(?=\s*\{)")
_CARRIES_JSON = re.compile(r"[{\[]\s*[\"'{\\]")
# A string with the mark before it, as an apostrophe opens no string elsewhere; or a bracket.
_MARK = re.compile(r"""[{\[,:(]\s{0,19}'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?|[{}\[\]]""", re.DOTALL)

# "**Quality Level:** Good", "- quality_level: Good", or the key alone, as a heading.
_KEY_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*•>#]+[ \t]+)?[*_`\"']{0,3}(?P<key>[A-Za-z][A-Za-z_ -]{1,30}?)[*_`\"']{0,3}"
    r"[ \t]*(?:[:：][ \t]*(?:\*\*|__)?[ \t]*(?P<value>.*))?"
)
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[*•][ \t]+", re.MULTILINE)
_BLOCK = re.compile(r"\s*[>|][+-]?\s*")  # of YAML: the text follows
_ALIAS = re.compile(r"(?:^|[\s\[{,:-])[&*]\w")  # of YAML, too, with which a short text can be huge


# Reasoning, marks of chat templates, and what tells that an answer breaks off.
_TAG = "(think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think)>"
_THOUGHTS = re.compile(
    rf"\s*(?:<{_TAG}.*?</\1>|◁think▷.*?◁/think▷|\[THINK\].*?\[/THINK\]"
    r"|<\|begin_of_thought\|>.*?<\|end_of_thought\|>|(?=<\|(?:channel|start)\|>).*<\|channel\|>final<\|message\|>)",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHTS_BEGUN_BY_THE_PROMPT = re.compile(rf"\s*[^\s{{`<].*?</{_TAG}", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(
    rf"\s*(?:<{_TAG}|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<\|channel\|>(?!final))", re.IGNORECASE
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?P<end>"|\\?\Z)', re.DOTALL)  # one without an end takes the rest
_WHOLE_VALUE_LAST = re.compile(r'(:\s*""|[}\]])[\s`]*$')


class Unreadable(ValueError):
    """The text is no answer; the message tells the model what to change."""


# What the parsers raise for what they cannot read: a date of YAML that is none is a ValueError, and an integer may be
# too large for a float.
PARSERS_RAISE = (ValueError, OverflowError, RecursionError)


class JsonValue(NamedTuple):
    """An object or a list, and where it stands in the text."""

    value: Any
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
    return {each: answer if each == name else _text_beside(text, each) for each in kinds}


def read_answer(text: str, field: str, model: type[BaseModel]) -> BaseModel:
    """The answer in a text, as the model class of the output field. Raises Unreadable."""
    try:
        return validated(written_answer(text, field, model), model)
    except Unreadable:
        raise
    except PARSERS_RAISE as error:
        raise Unreadable(UNREAD) from error


def begun_answer(text: str, field: str, model: type[ModelAnswer]) -> dict[str, Any] | None:
    """What an answer that was rejected has under the model's keys, as written; ``None`` where that is unclear."""
    if too_much(text):
        return None
    try:
        fields: Mapping[Any, Any] | None = written_answer(text, field, model)
    except PARSERS_RAISE:
        fields = None
    with suppress(*PARSERS_RAISE):
        if fields is None and not cut_short(text):
            fields = key_lines(without_thoughts(text), model, least=1)
        return None if fields is None else under_own_keys(fields, model)[0]
    return None


def too_much(text: str) -> str | None:
    """Why a text is too long, too deep or too large a number to be read, for the model; ``None`` where it is read.

    The time that it takes, and that reading takes where it gives ``None``, grows with the length of the text only.
    """
    if len(text) <= LONGEST_WITH_THOUGHTS:
        text = without_thoughts(text)
    if len(text) > LONGEST:
        return f"the answer is too long: it has {len(text):,} characters, and at most {LONGEST:,} are read"
    steps = (1 if bracket in "{[" else -1 for bracket in re.findall(r"[{}\[\]]", text))
    if max(accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0)) > DEEPEST:
        return f"the answer is nested too deeply: more than {DEEPEST} brackets are open at once"
    if text.count("{") + text.count("[") > MOST_BRACKETS:
        return f"the answer has too many brackets: more than {MOST_BRACKETS:,}"
    if _LONG_NUMBER.search(text):
        return f"a number in the answer is too long: it has more than {MOST_DIGITS} digits"
    return None


def require_readable(text: str) -> None:
    """Raises Unreadable for a text that is too long, too deep or too large a number."""
    if why := too_much(text):
        raise Unreadable(why)


def written_answer(text: str, field: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """The last object of the text that has the answer's keys, not yet validated. Raises Unreadable."""
    require_readable(text)
    text = without_thoughts(text)
    if not text.strip():
        raise Unreadable("the answer was empty")
    values = list(json_values(text))
    found = [JsonValue(_only(inside), *at) for value, *at in values if (inside := _answers_in(value, field, model))]
    if found and ends_in_thoughts(text) and found[-1].end < len(text.rstrip("` \n")):
        raise Unreadable(IN_THOUGHTS)
    if fields := _the_one(found, text, model) if found else key_lines(text, model):
        return fields
    if cut_short(text):
        raise Unreadable(IN_THOUGHTS if ends_in_thoughts(text) else UNFINISHED)
    objects = [each.value for each in values if isinstance(each.value, Mapping)]
    nested = [item for each in objects for item in (*each.values(), each) if isinstance(item, Mapping)]
    if begun := [each for each in nested if exact_keys(each, model)]:
        return begun[-1]  # validating it says which keys are missing
    raise Unreadable(f"the JSON object has no field {field!r} with the keys asked for" if objects else UNREAD)


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


def json_values(text: str) -> Iterator[JsonValue]:
    """The outermost objects, and lists of objects, of a text in their order. Raises Unreadable for a key given twice.

    Strict JSON is decoded as it is. What is looser (Python's dicts, comments, trailing commas) is repaired, but only
    where its brackets close, or where nothing but closing brackets is missing. Nothing is read after a value that is
    never closed.
    """
    with suppress(ValueError):
        if text.lstrip()[:1] == '"':  # a JSON string with JSON in it
            yield JsonValue(json.loads(text, strict=False), 0, len(text))
            return
    at = in_prose = 0
    while (opening := _OPENING.search(text, at)) and in_prose < MOST_IN_PROSE:
        value, at = _decoded(text, opening.start())
        if value is None:
            in_prose += 1
        else:
            yield JsonValue(value, opening.start(), at)


def key_lines(text: str, model: type[BaseModel], least: int | None = None) -> Mapping[str, Any] | None:
    """What stands after the model's keys in lines of their own, as in YAML or in a Markdown list, in place of JSON.

    ``None`` where fewer than ``least`` of the keys, more than half, are there. Raises Unreadable for a key that is
    there twice with different values.
    """
    if len(text) > LONGEST_LOOSE:
        return None
    own = {snake(name): name for name in wire_names(model)}
    names = own | {name: name for name in getattr(model, "set_by_rules", ())}
    blocks: list[tuple[str, list[str]]] = []
    indent: str | None = None
    for line in _FENCE.sub("", text).splitlines():
        match = _KEY_LINE.fullmatch(line)
        name = names.get(snake(match["key"])) if match else None
        if match and name and indent in (None, match["indent"]):
            indent = match["indent"]
            blocks.append((name, [match["value"] or ""]))
        elif blocks:
            blocks[-1][1].append(line)
    texts = {field.alias or name for name, field in model.model_fields.items() if field.annotation is str}
    found = _each_key_once((name, _of_lines(*lines, is_text=name in texts)) for name, lines in blocks)
    enough = least or len(own) // 2 + 1
    return found if len(found.keys() & {*own.values()}) >= enough else None


def without_thoughts(text: str) -> str:
    """The text without leading reasoning in tags; the opening tag may be missing because the prompt ends with it."""
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_BEGUN_BY_THE_PROMPT.match(text)
    return text[thoughts.end() :] if thoughts else text


def ends_in_thoughts(text: str) -> bool:
    """Whether an answer begins with reasoning in tags that is never closed."""
    return bool(_THINKING.match(without_thoughts(text)))


def cut_short(text: str) -> bool:
    """Whether an answer breaks off: inside its reasoning, or in a JSON object with a value that may be incomplete.

    An answer that lacks nothing but closing braces is complete.
    """
    if ends_in_thoughts(text):
        return True
    text = without_thoughts(text)
    outside = _STRING.sub(_emptied, text[text.find("{") :] if "{" in text else "")
    if '"' in outside.replace('""', ""):  # a string that is not closed, or a stray quotation mark in one
        return not outside.rstrip("` \n").endswith("}")
    braces, brackets = (outside.count(opening) - outside.count(closing) for opening, closing in ("{}", "[]"))
    return brackets > 0 or (braces > 0 and not _WHOLE_VALUE_LAST.search(outside))


def _emptied(string: re.Match[str]) -> str:
    return '""' if string["end"] == '"' else string[0]


def _answers_in(value: Any, field: str, model: type[BaseModel], depth: int = 0) -> list[Mapping[Any, Any]]:
    """The objects inside a value that have at least half of the model's keys."""
    if depth > MOST_WRAPPERS:
        return []

    def inside(items: Iterable[Any]) -> list[Mapping[Any, Any]]:
        return [answer for item in items for answer in _answers_in(item, field, model, depth + 1)]

    if isinstance(value, str):
        return (
            inside(v.value for v in json_values(value)) if _CARRIES_JSON.search(value) and not too_much(value) else []
        )
    if isinstance(value, list):
        return _as_rows(value, model) or inside(value)
    if not isinstance(value, Mapping):
        return []
    own = next((item for key, item in value.items() if snake(key) == field), None)
    if answers := inside([own]):
        return answers
    if isinstance(own, Mapping):
        return _as_rows(own, model) or [own]
    enough = ceil(len(model.model_fields) / 2)
    if exact_keys(value, model) >= enough:
        return [value]
    wrapped = inside(value.values())
    if wrapped or known_keys(value, model) >= enough:
        return wrapped or [value]
    return _as_rows([value], model) or (_as_rows(value, model) if depth == 0 else [])


def _as_rows(value: Any, model: type[BaseModel]) -> list[Mapping[Any, Any]]:
    """Bare rows, or the documents' mapping by region, under the only key of a model, where they are valid there."""
    (name, *others) = model.model_fields
    with suppress(ValidationError):
        if value and not others:
            model.model_validate({name: value})
            return [{name: value}]
    return []


def _only(answers: Sequence[Mapping[Any, Any]]) -> Mapping[Any, Any]:
    if any(each != answers[0] for each in answers[1:]):
        raise Unreadable(TWO_ANSWERS)
    return answers[0]


def _the_one(found: list[JsonValue], text: str, model: type[BaseModel]) -> Mapping[Any, Any]:
    """The last one; raises Unreadable when an earlier one is a valid answer too, and another."""
    *earlier, last = found
    between = text[earlier[-1].end : last.start] if earlier else ""
    if earlier and (not _REPLACES.search(between) or _ANOTHER_QUESTION.search(between)):
        verdicts = [_verdict(last.value, model)]
        for each in earlier:
            with suppress(Unreadable):
                verdicts.append(_verdict(each.value, model))
        _only(verdicts)
    return last.value


def _verdict(fields: Mapping[Any, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The answer without its reason."""
    return validated(fields, model).model_dump(exclude={"quality_reasoning", "replan_reason"})


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The value that opens at ``at``, ``None`` for a bracket in prose, and where to go on."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        breaks_off = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
    closing = None if breaks_off else _closing(text, at)
    if closing is not None:
        value = _repaired(text[at:closing])
        return (value, at + 1) if value is None else (value, closing)
    return None if cut_short(text[at:]) else _repaired(text[at:]), len(text)


def _closing(text: str, at: int) -> int | None:
    """Just after the bracket that closes the one at ``at``; brackets in strings do not count."""
    depth = 0
    for mark in _MARK.finditer(text, at, at + LONGEST_LOOSE):
        depth += (mark[0][0] in "{[") - (mark[0][0] in "}]")
        if depth == 0:
            return mark.end()
    return None


def _repaired(text: str) -> Any:
    """A loose object or list; ``None`` where it cannot be repaired."""
    value = None
    if len(text) <= LONGEST_LOOSE:
        with suppress(ValueError, SyntaxError, TypeError, MemoryError):
            value = ast.literal_eval(text)
        if not isinstance(value, dict | list):
            value = json_repair.loads(text)
    return value if isinstance(value, dict | list) and value else None


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise Unreadable(f"the key {key[:40]!r} is there twice, with different values")
        found[key] = value
    return found


def _of_lines(first: str, *lines: str, is_text: bool) -> Any:
    """The value of a key that stands in these lines: text as it is, anything else as YAML."""
    first, rest = _BLOCK.sub("", first, count=1).strip(), textwrap.dedent("\n".join(lines)).strip("\n")
    block = f"{first}\n{rest}" if first else rest
    if is_text:
        return " ".join(block.split()).strip("\"'`*")
    block = _BULLET.sub(r"\1", block)
    if not _ALIAS.search(block):
        with suppress(yaml.YAMLError, ValueError):  # a date that is none is a ValueError
            return yaml_value(block)
    return first.strip("\"'`*, ")


def _text_beside(text: str, name: str) -> str:
    """The text under another key of the object that has the answer."""
    values = (each.value for each in json_values(without_thoughts(text)) if isinstance(each.value, Mapping))
    return next((value[name] for value in values if isinstance(value.get(name), str)), "")


# A line break inside a string is a common and harmless mistake.
_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_each_key_once,
    parse_int=lambda digits: int(digits) if len(digits) <= MOST_DIGITS else float(digits),
)
