"""The wordings of the questions, read from a CSV: written by hand, and templates that are filled in with nouns.

The columns are ``kind,style,about,truth,text``. ``about`` is a concept, "any", or a metric; with "*" the text is a
template that is filled in for every concept, with the noun that a row of kind "noun" gives it for ``{noun}``. What
``truth`` says depends on the kind. Options carry in braces what makes them true, "A. None{0} B.
Slight{1-2} C. Strong{3-5}" by levels or "A. Blur{blur} B. Noise{noise}" by names, which the reader takes out again.
``\\n`` in a text is a line break.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agenticiqa.eval.research import DATA
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.answers.question_reader import NOUNS

SPLITS = (
    "dev",
    "heldout",
    "fresh",
    "test",
    "trade",
    "research",
    "public",
    "press",
    "service",
    "market",
    "office",
    "club",
)
COLUMNS = ["kind", "style", "about", "truth", "text"]
_TAGGED = re.compile(r"([A-Z])[.):]\)?\s*[^{}]*?\{([^{}]+)\}")
_TAG = re.compile(r"\{[^{}]+\}")


@dataclass(frozen=True)
class Wording:
    """One question in words; ``tags`` has what makes each option true, by letter, {} without options."""

    kind: str
    style: str
    about: str
    truth: str
    text: str
    tags: dict[str, str]
    is_template: bool = False


def wordings_file(split: str) -> Path:
    """Return the file with the wordings of a split."""
    return DATA / f"wordings_{split}.csv"


def read_wordings(file: Path) -> list[Wording]:
    """All wordings of a file, templates filled in. Raises UserError, naming the line, for one that cannot be read."""
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.DictReader(opened)
        if reader.fieldnames != COLUMNS:
            raise UserError(f"{file} has the columns {reader.fieldnames}, not {COLUMNS}")
        rows = [(reader.line_num, row) for row in reader]
    nouns = {row["about"]: row["text"] for _, row in rows if row["kind"] == "noun"}
    return [
        wording
        for line, row in rows
        if row["kind"] != "noun"
        for wording in _filled(_wording(row, f"{file}:{line}"), nouns)
    ]


def _wording(row: dict[str, str], where: str) -> Wording:
    if None in row.values() or not (row["kind"] and row["style"] and row["about"] and row["text"]):
        raise UserError(f"{where}: expected {', '.join(COLUMNS)}, got {row}")
    if row["about"] == "*" and "{noun}" not in row["text"]:
        raise UserError(f"{where}: a template needs {{noun}}")
    text = row["text"].replace("\\n", "\n")
    tags = {letter: tag for letter, tag in _TAGGED.findall(text) if tag != "noun"}
    plain = _TAG.sub(lambda match: match[0] if match[0] == "{noun}" else "", text)
    return Wording(row["kind"], row["style"], row["about"], row["truth"], plain, tags)


def _filled(wording: Wording, nouns: dict[str, str]) -> Iterator[Wording]:
    if wording.about != "*":
        yield wording
        return
    for concept in NOUNS:
        if concept in nouns:
            text = wording.text.replace("{noun}", nouns[concept])
            yield replace(wording, about=concept, text=text, is_template=True)
