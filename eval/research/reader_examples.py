"""Make labeled training examples for the network that reads questions: wordings of questions and their options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.wordings import SPLITS, Wording, read_wordings, wordings_file
from agenticiqa.programs.offline.answers.asked import question_alone
from agenticiqa.programs.offline.answers.question_reader import (
    AMOUNT,
    INTENTS,
    MEANINGS,
    NONE,
    NOUNS,
    OTHER,
    in_context,
    listing,
)
from agenticiqa.programs.offline.answers.rule_answer import is_yes_no
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.signatures.lexicon import terms_in

MEASURED_ONLY = ("press", "service", "office", "club")
"""The sets that nothing is learned from."""
TEACHING = DATA / "teaching.csv"
"""Wordings for learning alone. Of two kinds more: "option", the text of an option that names the concept, and "level",
one that says how much of it there is, of "any" where it does not say of what; ``truth`` has the levels that it is true
for. That of "degree", "which" and "choice" is "part" where they are about a part of the image."""
MOST_OF_TEMPLATES = 800
SHORT = 2  # words of an option that names nothing and so says only how much
ANY = "any"
OF_PART = "part"
UNKNOWN = -1  # no label


@dataclass(frozen=True)
class Example:
    """A text and its labels.

    ``intent`` and ``meaning`` are places in ``INTENTS`` and ``MEANINGS`` or ``UNKNOWN``, ``level`` is 0 (none of it) to
    5 or ``UNKNOWN``.
    """

    text: str
    intent: int
    meaning: int
    level: float = UNKNOWN


def taught(without: Sequence[str], random: Random) -> list[Example]:
    """Return the examples of all training sets except the given ones, of ``TEACHING``, and some templates."""
    splits = [split for split in SPLITS if split not in (*MEASURED_ONLY, *without)]
    rows = [row for split in splits for row in read_wordings(wordings_file(split))] + read_wordings(TEACHING)
    filled = [row for row in rows if row.is_template]
    some = random.sample(filled, min(len(filled), MOST_OF_TEMPLATES))
    return examples_of([*(row for row in rows if not row.is_template), *some])


def examples_of(rows: Sequence[Wording]) -> list[Example]:
    """What to read from each of the wordings, with and without its options, and from these, each once."""
    made: list[Example] = []
    for row in rows:
        if row.kind == "option":
            made.append(Example(row.text, UNKNOWN, MEANINGS.index(row.about)))
        elif row.kind == "level":
            made.append(_of_level(row.text, row.truth, AMOUNT if row.about == ANY else _sure(row.about, row.truth)))
        elif (offered := parse_options(row.text)) and (row.tags or not is_yes_no(offered)):
            asked = question_alone(row.text)
            listed = [] if is_yes_no(offered) else [_of_question(row, listing(asked, offered))]
            made += [*([_of_question(row, asked)] if asked else []), *listed, *_of_options(row, asked, offered)]
        else:
            made.append(_of_question(row, row.text))
    return list(dict.fromkeys(made))


def intent_of(wording: Wording) -> str:
    """Return the intent of a wording, by its kind and truth."""
    kind, truth = wording.kind, wording.truth
    if truth == OF_PART:
        return f"part-{'which' if wording.about == ANY else 'degree'}"
    if kind == "choice" and is_yes_no(offered := parse_options(wording.text)):
        says_yes = next(letter for letter, text in offered.items() if text.lower().startswith("yes"))
        return "no" if wording.tags[says_yes].startswith("0") else "yes"
    if kind == "choice":
        return "degree" if wording.about in NOUNS else "which"
    if kind in ("presence", "negation"):
        return truth
    if kind == "subject":
        return f"part-{truth.partition(':')[2]}"
    if kind == "half":
        return "half-clean" if truth.endswith("clean") else kind
    if kind == "rating":
        worst, best = map(float, truth.split(":"))
        return "rating-high" if worst < best else "rating-low"
    return f"{kind}-{truth}" if kind in ("reference", "compare") else kind


def _of_question(wording: Wording, asked: str) -> Example:
    about = wording.about if wording.about in NOUNS else NONE
    meaning = UNKNOWN if wording.kind in ("unanswerable", "metric") else MEANINGS.index(about)
    return Example(asked, INTENTS.index(intent_of(wording)), meaning)


def _of_options(wording: Wording, asked: str, offered: Mapping[str, str]) -> list[Example]:
    """Return each option by itself, as far as it says enough alone, and behind its question."""
    found = []
    for letter, text in offered.items():
        tag = wording.tags.get(letter, "")
        if wording.kind == "unanswerable" and not wording.tags:
            found.append(Example(in_context(asked, text), UNKNOWN, MEANINGS.index(OTHER)))
        elif tag in MEANINGS:
            named = MEANINGS.index(tag)
            found += [Example(text, UNKNOWN, named), Example(in_context(asked, text), UNKNOWN, named)]
        elif tag[:1].isdigit() and wording.kind in ("degree", "choice"):
            alone = wording.about if terms_in(text) else AMOUNT if len(text.split()) <= SHORT else ""
            behind = NONE if tag == "0" else _sure(wording.about, tag)
            found += [_of_level(text, tag, _sure(alone, tag))]
            found += [_of_level(in_context(asked, text), tag, behind)] if asked else []
    return found


def _of_level(text: str, levels: str, meaning: str) -> Example:
    """Return an option that says how much there is: the middle of the levels that it is true for. "" is no label."""
    first, _, last = levels.partition("-")
    label = MEANINGS.index(meaning) if meaning else UNKNOWN
    return Example(text, UNKNOWN, label, (float(first) + float(last or first)) / 2)


def _sure(meaning: str, levels: str) -> str:
    """Return the meaning; "" for levels of which one is none, so that it may not be there."""
    return "" if levels.startswith("0") else meaning
