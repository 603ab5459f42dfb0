"""Read wordings of questions from CSV files: hand-written ones, and templates that are filled in with nouns.

The columns are ``kind,style,about,truth,text``. ``about`` is a concept, "any" or a metric. With "*" the text is a
template for every concept: ``{noun}`` becomes the noun in the concept's row of kind "noun". The meaning of ``truth``
depends on the kind. Options have their condition in braces: levels, as in "A. None{0} B. Slight{1-2} C. Strong{3-5}",
or names, as in "A. Blur{blur} B. Noise{noise}". They are removed from the text. ``\\n`` in a text is a line break.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agenticiqa.eval.research import DATA
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.answers.question_reader import FAULTS

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
    """One question; ``tags`` has the condition of each option, by letter, {} without options."""

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
    """Return all wordings of a file, with templates filled in. Raises UserError with the line of an unreadable one."""
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.DictReader(opened)
        if reader.fieldnames != COLUMNS:
            raise UserError(f"{file}: the columns are {reader.fieldnames}; expected {COLUMNS}")
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
        raise UserError(f"{where}: a value is missing; expected {', '.join(COLUMNS)}, got {row}")
    if row["about"] == "*" and "{noun}" not in row["text"]:
        raise UserError(f"{where}: no {{noun}} in the text; a row with * in about needs it")
    text = row["text"].replace("\\n", "\n")
    tags = {letter: tag for letter, tag in _TAGGED.findall(text) if tag != "noun"}
    plain = _TAG.sub(lambda match: match[0] if match[0] == "{noun}" else "", text)
    return Wording(row["kind"], row["style"], row["about"], row["truth"], plain, tags)


def _filled(wording: Wording, nouns: dict[str, str]) -> Iterator[Wording]:
    if wording.about != "*":
        yield wording
        return
    for concept in FAULTS:
        if concept in nouns:
            text = wording.text.replace("{noun}", nouns[concept])
            yield replace(wording, about=concept, text=text, is_template=True)
