"""Make labeled training examples for the network that reads questions: wordings of questions and their options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.wordings import SPLITS, Wording, read_wordings, wordings_file
from agenticiqa.programs.offline.answers.asked import question_alone
from agenticiqa.programs.offline.answers.question_reader import (
    AMOUNT,
    FAULTS,
    INTENTS,
    MEANINGS,
    NONE,
    OTHER,
    in_context,
    listing,
)
from agenticiqa.programs.offline.answers.rule_answer import is_yes_no
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.signatures.lexicon import terms_in

MEASURED_ONLY = ("press", "service", "office", "club")
"""The held-out sets."""
TRAINING_ONLY = DATA / "training_only.csv"
"""Wordings for training only. Two kinds are not in other files: "option", an option that names the concept, and
"level", an option that says how much of it there is ("any": of an unnamed concept); ``truth`` has the levels for which
it is true. Wordings "degree", "which" and "choice" about a part of the image have the truth "part"."""
MOST_OF_TEMPLATES = 800
SHORT = 2  # words of an option that names no concept, only an amount
ANY = "any"
OF_PART = "part"
UNKNOWN = -1  # class number of an example without a label


@dataclass(frozen=True)
class Example:
    """A text and its labels.

    ``intent`` and ``meaning`` are indices of ``INTENTS`` and ``MEANINGS``, ``level`` is 0 (none) to 5. Each can be
    ``UNKNOWN``.
    """

    text: str
    intent: int
    meaning: int
    level: float = UNKNOWN


def training_examples(without: Sequence[str], random: Random) -> list[Example]:
    """Return examples of ``TRAINING_ONLY``, of all training sets but the given ones, and of some templates."""
    splits = [split for split in SPLITS if split not in (*MEASURED_ONLY, *without)]
    rows = [row for split in splits for row in read_wordings(wordings_file(split))] + read_wordings(TRAINING_ONLY)
    filled = [row for row in rows if row.is_template]
    some = random.sample(filled, min(len(filled), MOST_OF_TEMPLATES))
    return examples_of([*(row for row in rows if not row.is_template), *some])


def examples_of(rows: Sequence[Wording]) -> list[Example]:
    """Return examples of the wordings, with and without their options, and of the options, each once."""
    made: list[Example] = []
    for row in rows:
        if row.kind == "option":
            made.append(Example(row.text, UNKNOWN, MEANINGS.index(row.about)))
        elif row.kind == "level":
            made.append(_of_level(row.text, row.truth, AMOUNT if row.about == ANY else _sure(row.about, row.truth)))
        elif (offered := parse_options(row.text)) and (row.tags or not is_yes_no(offered)):
            query = question_alone(row.text)
            listed = [] if is_yes_no(offered) else [_of_question(row, listing(query, offered))]
            made += [*([_of_question(row, query)] if query else []), *listed, *_of_options(row, query, offered)]
        else:
            made.append(_of_question(row, row.text))
    return list(dict.fromkeys(made))


def intent_of(wording: Wording) -> str:
    """Return the intent of a wording, from its kind and truth."""
    kind, truth = wording.kind, wording.truth
    if truth == OF_PART:
        return f"part-{'which' if wording.about == ANY else 'degree'}"
    offered = parse_options(wording.text)
    if kind == "choice" and is_yes_no(offered):
        says_yes = next(letter for letter, text in offered.items() if text.lower().startswith("yes"))
        return "no" if wording.tags[says_yes].startswith("0") else "yes"
    if kind == "choice":
        return "degree" if wording.about in FAULTS else "which"
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


def _of_question(wording: Wording, query: str) -> Example:
    about = wording.about if wording.about in FAULTS else NONE
    meaning = UNKNOWN if wording.kind in ("unanswerable", "metric") else MEANINGS.index(about)
    return Example(query, INTENTS.index(intent_of(wording)), meaning)


def _of_options(wording: Wording, query: str, offered: Mapping[str, str]) -> list[Example]:
    """Return examples of each option: alone, if that is clear enough, and after its question."""
    examples = []
    for letter, text in offered.items():
        tag = wording.tags.get(letter, "")
        if wording.kind == "unanswerable" and not wording.tags:
            examples.append(Example(in_context(query, text), UNKNOWN, MEANINGS.index(OTHER)))
        elif tag in MEANINGS:
            place = MEANINGS.index(tag)
            examples += [Example(text, UNKNOWN, place), Example(in_context(query, text), UNKNOWN, place)]
        elif tag[:1].isdigit() and wording.kind in ("degree", "choice"):
            alone = wording.about if terms_in(text) else AMOUNT if len(text.split()) <= SHORT else ""
            behind = NONE if tag == "0" else _sure(wording.about, tag)
            examples.append(_of_level(text, tag, _sure(alone, tag)))
            if query:
                examples.append(_of_level(in_context(query, text), tag, behind))
    return examples


def _of_level(text: str, levels: str, meaning: str) -> Example:
    """Return an example of an option for an amount, at the middle of its levels; the meaning "" gives no label."""
    first, _, last = levels.partition("-")
    label = MEANINGS.index(meaning) if meaning else UNKNOWN
    return Example(text, UNKNOWN, label, (float(first) + float(last or first)) / 2)


def _sure(meaning: str, levels: str) -> str:
    """Return the meaning, or "" if the levels include 0, as the distortion may be absent."""
    return "" if levels.startswith("0") else meaning
