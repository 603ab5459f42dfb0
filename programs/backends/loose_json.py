"""The JSON values in a text, also in the loose forms that models write: Python's dicts, comments, trailing commas.

Strict JSON is decoded as it is. What is looser is repaired, but only where its brackets close, or where nothing but
closing brackets is missing: half a value is never completed.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair

from agenticiqa.programs.backends.cleaning import cut_short

LONGEST_REPAIRED = 20_000  # characters; repairing is slow
DEEPEST_REPAIRED = 200  # brackets
MOST_BRACKETS = 100  # opening ones in prose that are tried
LONGEST_INTEGER = 300  # digits

_OPENING = re.compile(r"\{|\[(?=\s*\{)")
_LIKE_AN_OBJECT = re.compile(r"[{\[\s]*(?:\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|\w{1,80})\s*:")
_STRING_BEFORE = re.compile(r"[{\[,:(]\s*$")
_PLAIN = str.maketrans(
    {
        **dict(zip("｛｝［］：，“”„＂", '{}[]:,""""', strict=True)),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff"),
    }
)


class TwoValues(ValueError):
    """A key is there twice with different values, or there are two objects where one was asked for."""


@dataclass(frozen=True)
class Decoded:
    """An object or a list, and where it stands in the text."""

    value: Any
    start: int
    end: int


def decoded_values(text: str) -> Iterator[Decoded]:
    """The outermost objects, and lists of objects, of a text in their order. Raises TwoValues for a key given twice.

    Nothing is read after one that is never closed; such a one is read where only closing brackets are missing.
    """
    whole = text.strip()
    if whole[:1] == '"':  # a JSON string with JSON in it
        try:
            inner = json.loads(whole, strict=False)
        except ValueError:
            inner = None
        if isinstance(inner, str):
            yield Decoded(inner, 0, len(text))
            return
    opening, in_prose = _OPENING.search(text), 0
    while opening and in_prose < MOST_BRACKETS:
        at = opening.start()
        value, end = _decoded(text, at)
        if end is None:
            if not cut_short(text[at:]):
                value = _repaired(text[at:])
                if value is not None:
                    yield Decoded(value, at, len(text))
            return
        if value is None:
            in_prose += 1
        else:
            yield Decoded(value, at, end)
        opening = _OPENING.search(text, end)


def plain_characters(text: str) -> str:
    """The text with plain brackets, quotes and blanks in the place of full-width, curly and non-breaking ones."""
    return text.translate(_PLAIN)


def _decoded(text: str, at: int) -> tuple[Any, int | None]:
    """The value that opens at ``at`` and its end; no value for a bracket in prose, no end for one that never closes."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            return None, None
    closing = _closing(text, at)
    if closing is None:
        return (None, None) if _LIKE_AN_OBJECT.match(text, at) else (None, at + 1)
    value = _repaired(text[at:closing])
    return (value, closing) if value is not None else (None, at + 1)


def _repaired(text: str) -> Any:
    """A loose object or list as Python's or as JSON; ``None`` where it cannot be repaired."""
    if len(text) > LONGEST_REPAIRED or text.count("{") + text.count("[") > DEEPEST_REPAIRED:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError):
        value = None
    if not isinstance(value, dict | list):
        value = json_repair.loads(_without_comments(text))
    return value if isinstance(value, dict | list) and value else None


def _without_comments(text: str) -> str:
    return "".join("" if _COMMENT.fullmatch(part) else part for part in _COMMENT_OR_STRING.findall(text))


# A string that its line does not end, and a comment that is never closed, are left as they are, up to there.
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)|[^"/]++|.', re.DOTALL)
_COMMENT = re.compile(r"//.*|/\*.*\*/", re.DOTALL)


def _closing(text: str, at: int) -> int | None:
    """Just after the bracket that closes the one at ``at``; brackets in strings do not count.

    ``None`` where none does within what would be repaired.
    """
    depth, quote, position = 0, "", at
    while position < min(len(text), at + LONGEST_REPAIRED):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character == '"' or (character == "'" and _STRING_BEFORE.search(text, max(at, position - 20), position)):
            quote = character
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise TwoValues(f"the key {key[:40]!r} is there twice, with different values")
        found[key] = value
    return found


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


# A line break inside a string is a common and harmless mistake.
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_each_key_once, parse_int=_integer)
