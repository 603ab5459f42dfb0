"""An answer without JSON: its keys at the beginning of lines, as in YAML or in a Markdown list."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from agenticiqa.programs.backends.loose_json import TwoValues
from agenticiqa.signatures.answers import snake, wire_names

_KEY_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*•>#]+[ \t]+)?[*_`\"']{0,3}(?P<key>[A-Za-z][A-Za-z_ -]{1,30}?)[*_`\"']{0,3}"
    r"[ \t]*[:：][ \t]*(?:\*\*|__)?[ \t]*(?P<value>.*)"
)
_HEADING = re.compile(
    r"(?P<indent>)(?:#{1,6}[ \t]+[*_]{0,2}|\*\*)(?P<key>[A-Za-z][A-Za-z_ -]{1,30}?)[*_]{0,2}[ \t]*(?P<value>)"
)
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[*•][ \t]+", re.MULTILINE)
_ALIAS = re.compile(r"(?:^|[\s\[{,:-])[&*]\w")  # an anchor or alias of YAML, with which a short text can be huge
BLOCKS = {">", "|", ">-", "|-", ">+", "|+"}  # of YAML: the text follows
LONGEST = 20_000  # characters


def key_lines(text: str, model: type[BaseModel], least: int | None = None) -> Mapping[str, Any] | None:
    """The values that stand after the model's keys, where ``least`` of them, more than half, have lines of their own.

    Raises TwoValues for a key that is there twice with different values.
    """
    if len(text) > LONGEST:
        return None
    names = {snake(name): name for name in wire_names(model)}
    blocks: list[tuple[str, list[str]]] = []
    indent: str | None = None
    for line in _FENCE.sub("", text).splitlines():
        match = _KEY_LINE.fullmatch(line) or _HEADING.fullmatch(line.rstrip())
        name = names.get(snake(match["key"])) if match else None
        if match and name and indent in (None, match["indent"]):
            indent = match["indent"]
            blocks.append((name, [match["value"]]))
        elif blocks:
            blocks[-1][1].append(line)
    found: dict[str, Any] = {}
    for name, lines in blocks:
        value = _value(lines, is_text=_field(model, name) is str)
        if name in found and found[name] != value:
            raise TwoValues(f"{name} is there twice, with different values")
        found[name] = value
    return found if len(found) >= (least or len(names) // 2 + 1) else None


def _field(model: type[BaseModel], name: str) -> Any:
    return next(f.annotation for own, f in model.model_fields.items() if (f.alias or own) == name)


def _value(lines: list[str], *, is_text: bool) -> Any:
    first = "" if lines[0].strip() in BLOCKS else lines[0].strip()
    rest = textwrap.dedent("\n".join(lines[1:])).strip("\n")
    if is_text:
        return " ".join(f"{first}\n{rest}".split()).strip("\"'`*")
    block = _BULLET.sub(r"\1", f"{first}\n{rest}" if first else rest)
    if _ALIAS.search(block):
        return block.strip()
    try:
        return yaml.safe_load(block)
    except (yaml.YAMLError, ValueError):  # a date that is none is a ValueError
        return first.strip("\"'`*, ")
