"""A question that the rules read and a small network reads, too: which of both readings is answered."""

import re
from collections.abc import Mapping
from dataclasses import replace

from agenticiqa.programs.offline.language.plain_question import PlainQuestion, in_plain_words
from agenticiqa.programs.offline.language.question import Asked, Question
from agenticiqa.programs.offline.language.question_reader import Reading
from agenticiqa.programs.offline.language.verdicts import NO, YES, Verdict

SURE = 0.8  # least probability of what is asked where a word denies it, or asks for what no measurement tells
_YES_OR_NO = ("yes", "no", "part-yes", "part-no")
_SAME: Mapping[str, tuple[Asked, ...]] = {
    "yes": ("presence",),
    "no": ("presence",),
    "which": ("list", "presence"),
}
"""What the rules read for the intents that they may answer in more detail than the plain question does."""


def asked_instead(asked: str, question: Question, verdict: Verdict, reading: Reading) -> PlainQuestion | None:
    """The question in the network's words, to be answered instead; ``None`` where the ``verdict`` of the rules stands.

    ``asked`` are the words without options. The network reads more wordings rightly, so that the rules' reading counts
    where the network is not sure, and where it says more than the plain question.
    """
    plain = in_plain_words(asked, reading, question.regions, question.claim)
    is_open = not (verdict.answer or verdict.categories)
    return plain if plain and (is_open or not says_more(question, reading)) else None


def asks_of_other(reading: Reading) -> bool:
    """Whether a question is surely about what no measurement tells."""
    return reading.intent.name == "unanswerable" and reading.intent.probability >= SURE


def says_more(question: Question, reading: Reading) -> bool:
    """Whether the rules read what plain words would lose a part of.

    That are lists of all distortions, several distortions in one question, and the best end of a scale.
    """
    if question.asked == "rating":
        return question.scale is not None and question.scale.best is not None
    several = question.confidence == 1 and names_several(question, reading)
    if question.asked not in _SAME.get(reading.intent.name, ()):
        return several and len(question.regions) > 1  # "Is the left half blurry or the right half noisy?"
    return question.asked == "list" or several


def names_several(question: Question, reading: Reading) -> bool:
    """Whether a question is about several distortions: "blurry or noisy", "too dark or too bright".

    The last is about one, exposure, where it asks for yes or no.
    """
    of_one = reading.intent.name in _YES_OR_NO
    meanings = [meaning for meaning in question.claim.meanings if meaning.subject != "quality"]
    named = {(meaning.scale, "" if of_one else meaning.kind) for meaning in meanings}
    return question.asked == "presence" and len(named) > 1


def asks_of_each_part(question: Question, reading: Reading) -> bool:
    """Whether something is asked of several parts, each by itself: "Are the left half and the right half blurry?"."""
    joined = question.asked == "presence" and not re.search(r"\bor\b", question.text, re.I)
    return len(question.regions) > 1 and (joined or reading.intent.name in _YES_OR_NO)


def denied(verdict: Verdict) -> Verdict:
    """The same with "No" for "Yes" and the other way round."""
    word, mark, rest = (verdict.answer or "").partition(",")
    return replace(verdict, answer={YES: NO, NO: YES}.get(word, word) + mark + rest or None)
