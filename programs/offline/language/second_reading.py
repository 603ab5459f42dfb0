"""A question that the rules read and a small network reads, too: which of both is answered, and from whose words."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.places import Look
from agenticiqa.programs.offline.language.plain_question import RESTATED, PlainQuestion, in_plain_words
from agenticiqa.programs.offline.language.question import Asked, Question
from agenticiqa.programs.offline.language.question_reader import Reading, fault_named
from agenticiqa.programs.offline.language.verdicts import NO, YES, Verdict
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DETECTABLE

Answer = Callable[[Question, Look, MeasuredImage], tuple[Verdict, MeasuredImage]]

PREFERRED = 0.8  # least probability of the intent and of the distortion where the rules read something else
_YES_OR_NO = ("yes", "no", "part-yes", "part-no")
_SAME: Mapping[str, tuple[Asked, ...]] = {
    "yes": ("presence",),
    "no": ("presence",),
    "degree": ("degree",),
    "which": ("list",),
    "compare-category": ("list", "compare"),
}
"""What the rules read for the intents that they answer in more detail than the plain question does."""


def asked_instead(
    asked: str, question: Question, verdict: Verdict, reading: Reading, answer: Answer
) -> PlainQuestion | None:
    """The question in the network's words, to be answered instead; ``None`` where the ``verdict`` of the rules stands.

    ``asked`` are the words without options, ``answer`` answers a question by the rules. The rules know more of degrees
    and of several distortions in one question, so that theirs stands where both read the same, and where the network is
    not sure.
    """
    plain = in_plain_words(asked, reading, question.regions)
    if plain is None:
        return None
    if not verdict.answer:  # of a question that both read alike, the measurements do not tell
        return None if verdict.categories and reads_the_same(question, reading, answer) else plain
    says_ends = question.asked == "rating" and question.scale is not None and question.scale.best is not None
    if says_ends or question.asked == "choice" or names_several(question) or reads_the_same(question, reading, answer):
        return None
    # Which end of a scale is the best, and whether "yes" says that it is there, is less sure than the rest.
    sided = reading.intent.name.startswith("rating") or reading.intent.name in _YES_OR_NO
    sure = reading.intent.probability >= (RESTATED if sided else PREFERRED) and reading.meaning.category >= PREFERRED
    return plain if sure else None


def names_several(question: Question) -> bool:
    """Whether a question is about distortions of several kinds: "blurry or noisy", "too dark or too bright"."""
    named = {(meaning.scale, meaning.kind) for meaning in question.claim.meanings if meaning.subject != "quality"}
    return question.asked == "presence" and len(named) > 1


def asks_of_each_part(question: Question, reading: Reading) -> bool:
    """Whether something is asked of several parts, each by itself: "Are the left half and the right half blurry?"."""
    joined = question.asked == "presence" and not re.search(r"\bor\b", question.text, re.I)
    return len(question.regions) > 1 and (joined or reading.intent.name in _YES_OR_NO)


def reads_the_same(question: Question, reading: Reading, answer: Answer) -> bool:
    """Whether the rules read the same as the network: the kind of question, the distortion, and what a "yes" means."""
    intent = reading.intent.name
    if question.asked not in _SAME.get(intent, ()) or question.subject == "reference" or question.regions:
        return False
    if intent in ("which", "compare-category"):
        return True
    fault = fault_named(reading.meaning.name)
    about = {category for meaning in question.claim.meanings for category in meaning.categories}
    if fault is None or not about & set(fault.categories):
        return False
    if intent == "degree" or question.claim.degree is not None:
        return True
    there = damaged_by(fault)
    found, _ = answer(replace(question, options={}), lambda _: there, there)
    return found.answer is None or found.answer.startswith(YES if intent == "yes" else NO)


def damaged_by(fault: Meaning) -> MeasuredImage:
    """What would be measured of an image that has nothing but this distortion, as severe as can be."""
    findings = {name: Finding(0.0, "", "") for name in DETECTABLE}
    worst = {name: Finding(4.0, fault.kind, "") for name in fault.categories[:1]}
    return MeasuredImage({**findings, **worst}, 1.0)


def denied(verdict: Verdict) -> Verdict:
    """The same with "No" for "Yes" and the other way round."""
    word, mark, rest = (verdict.answer or "").partition(",")
    return replace(verdict, answer={YES: NO, NO: YES}.get(word, word) + mark + rest or None)
