"""Find the JSON objects in a model's text, strict or loose, without the reasoning before them.

Parsers do not limit their time, so texts that are too long or too deeply nested, or have huge numbers, are rejected.
"""

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

import json_repair

LONGEST = 64_000  # characters without the reasoning before the answer; eight times what 2,048 tokens make
LONGEST_WITH_THOUGHTS = 1_000_000
LONGEST_LOOSE = 20_000  # characters; repairing is slow
DEEPEST = 64  # maximum brackets that are open at once
MOST_BRACKETS = 500  # opening brackets; an answer about sixteen regions has fewer than 200
MOST_IN_PROSE = 100  # opening brackets that do not begin JSON
MOST_DIGITS = 300  # digits of a number; a float has at most 309

_LONG_NUMBER = re.compile(rf"(?<![\d_])\d[\d_]{{{MOST_DIGITS}}}|0[xX][\da-fA-F_]{{{MOST_DIGITS * 5 // 6}}}")
_OPENING = re.compile(r"\{|\[(?=\s*\{)")
# A string with the mark before it (elsewhere an apostrophe does not begin a string), or a bracket.
_MARK = re.compile(r"""[{\[,:(]\s{0,19}'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?|[{}\[\]]""", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?P<end>"|\\?\Z)', re.DOTALL)  # a string without an end takes the rest
_QUOTES = '"“”„‟«»‹›″＂〝〞「」『』‘’‚'
_ENTITY = r"&(?:quot|apos|[lr](?:s|d|a|sa)quo|#0*3[49]|#x0*2[27]);"
_PLAIN = dict(zip("｛｝［］：﹕∶，", "{}[]:::,", strict=True))


def _forms(marks: str) -> str:
    """Return plain marks of JSON and their typographic forms, for a class of characters in a pattern."""
    return re.escape(marks + "".join(wide for wide, plain in _PLAIN.items() if plain in marks))


_TYPOGRAPHIC = re.compile(rf"[{_QUOTES[1:]}{''.join(_PLAIN)}]|{_ENTITY}", re.IGNORECASE)
_PLAIN_OR_TYPOGRAPHIC = re.compile(rf"\\.|[{_QUOTES}{_forms('{}[]:,')}]", re.DOTALL)
# What follows the mark that ends a string: a colon, a bracket, the end, or a comma before a value.
_BEHIND_A_STRING = re.compile(
    rf"\s*+(?:[{_forms(':}]')}]|[{_forms(',')}]\s*+(?:[{_QUOTES}{_forms('{[')}\d-]|true\b|false\b|null\b)|\Z)",
    re.IGNORECASE,
)
_BRACKET = re.compile(f"[{_forms('{}[]')}]")
_WHOLE_VALUE_LAST = re.compile(r'(:\s*""|[}\]])[\s`]*$')

# Reasoning, in the marks of chat templates.
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


class Unreadable(ValueError):
    """Raised for a text that is not a readable answer; the message is for the model."""


class JsonValue(NamedTuple):
    """An object or a list, and its position in the text."""

    value: Any
    start: int
    end: int


def too_much(text: str) -> str | None:
    """Return, for the model, why a text cannot be parsed (length, depth, a huge number), or ``None`` if it can.

    This check, and parsing a text that passes it, take time linear in the length of the text.
    """
    if len(text) <= LONGEST_WITH_THOUGHTS:
        text = without_thoughts(text)
    if len(text) > LONGEST:
        return f"the answer is too long: it has {len(text):,} characters, and at most {LONGEST:,} are read"
    # Typographic brackets become plain ones when the answer is read.
    steps = [1 if _PLAIN.get(bracket, bracket) in "{[" else -1 for bracket in _BRACKET.findall(text)]
    if max(accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0)) > DEEPEST:
        return f"the answer is nested too deeply: more than {DEEPEST} brackets are open at once"
    if steps.count(1) > MOST_BRACKETS:
        return f"the answer has too many brackets: more than {MOST_BRACKETS:,}"
    if _LONG_NUMBER.search(text):
        return f"a number in the answer is too long: it has more than {MOST_DIGITS} digits"
    return None


def without_thoughts(text: str) -> str:
    """Remove leading reasoning in tags; the opening tag may be missing because the prompt ends with it."""
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_BEGUN_BY_THE_PROMPT.match(text)
    return text[thoughts.end() :] if thoughts else text


def ends_in_thoughts(text: str) -> bool:
    """Return whether an answer begins with reasoning in tags that is never closed."""
    return bool(_THINKING.match(without_thoughts(text)))


def cut_short(text: str) -> bool:
    """Return whether an answer is truncated, in its reasoning or in a JSON value that may be incomplete.

    An answer that lacks only closing braces is complete.
    """
    if ends_in_thoughts(text):
        return True
    _, brace, rest = without_thoughts(text).partition("{")
    outside = _STRING.sub(lambda string: '""' if string["end"] == '"' else string[0], brace + rest)
    if '"' in outside.replace('""', ""):  # an unclosed string, or a stray quotation mark in a string
        return not outside.rstrip("` \n").endswith("}")
    braces, brackets = (outside.count(opening) - outside.count(closing) for opening, closing in ("{}", "[]"))
    return brackets > 0 or (braces > 0 and not _WHOLE_VALUE_LAST.search(outside))


def in_plain_marks(text: str) -> str:
    """Return a text with the marks of JSON in place of typographic ones: « ” ： ｛ &quot;.

    A text with a valid object is unchanged. In others, a quotation mark of any form begins a string behind a comma,
    colon or opening bracket, and ends it before a comma, colon or closing bracket. Other marks are a part of a string.
    """
    if not _TYPOGRAPHIC.search(text) or _is_strict(text):
        return text
    text = html.unescape(text) if "&" in text else text
    parts: list[str] = []
    at, depth, is_inside, before = 0, 0, False, ""
    for match in _PLAIN_OR_TYPOGRAPHIC.finditer(text):
        mark, between = match[0], text[at : match.start()]
        plain = _PLAIN.get(mark, mark)
        parts.append(between)
        at = match.end()
        if is_inside and mark in _QUOTES:
            is_inside = not _BEHIND_A_STRING.match(text, at)
            plain = mark if is_inside else '"'
            plain = r"\"" if plain == '"' and is_inside else plain
        elif is_inside or (not depth and plain not in "{["):
            plain = mark
        elif mark in _QUOTES:
            is_inside = before in ("{", "[", ":", ",") and not between.strip()
            plain = '"' if is_inside else mark
        else:
            depth = max(0, depth + (plain in "{[") - (plain in "}]"))
        before = plain
        parts.append(plain)
    return "".join([*parts, text[at:]])


def _is_strict(text: str) -> bool:
    """Return whether the first object of a text is valid JSON."""
    opening = _OPENING.search(text)
    if opening is None:
        return False
    with suppress(ValueError):
        _DECODER.raw_decode(text, opening.start())
        return True
    return False


def json_values(text: str) -> Iterator[JsonValue]:
    """Yield the outermost objects and lists of objects of a text, in order. Raises Unreadable for a repeated key.

    Strict JSON is decoded unchanged. Loose JSON (Python's dicts, comments, trailing commas) is repaired only if its
    brackets are closed, or if only closing brackets are missing. The text after a value that is never closed is not
    read.
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


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """Return the value that opens at ``at`` (``None`` for a bracket in prose), and the position to continue at."""
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
    """Return the position after the bracket that closes the one at ``at``; brackets in strings do not count."""
    depth = 0
    for mark in _MARK.finditer(text, at, at + LONGEST_LOOSE):
        depth += (mark[0][0] in "{[") - (mark[0][0] in "}]")
        if depth == 0:
            return mark.end()
    return None


def _repaired(text: str) -> Any:
    """Return a loose object or list; ``None`` if it cannot be repaired."""
    value = None
    if len(text) <= LONGEST_LOOSE:
        with suppress(ValueError, SyntaxError, TypeError, MemoryError):
            value = ast.literal_eval(text)
        if not isinstance(value, dict | list):
            value = json_repair.loads(text)
    return value if isinstance(value, dict | list) and value else None


def each_key_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as an object. Raises Unreadable for a key with two values."""
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries and entries[key] != value:
            raise Unreadable(f"the key {key[:40]!r} is there twice, with different values")
        entries[key] = value
    return entries


# A line break inside a string is a common and harmless mistake.
_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=each_key_once,
    parse_int=lambda digits: int(digits) if len(digits) <= MOST_DIGITS else float(digits),
)
