"""Parse a question's intent, subject and image part with the network, and with the lexicon for exact words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from agenticiqa.programs.offline.answers.question_reader import (
    EXTENT,
    FAULTS,
    LONGEST_TEXT,
    MAIN_KIND,
    NONE,
    Read,
    Reading,
    corrected,
    fault_named,
    listing,
    read_text,
)
from agenticiqa.programs.offline.measured.findings import HUES
from agenticiqa.programs.questions.instructions import without_instructions
from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.questions.scale import RatingScale, in_digits, stated_scale
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE
from agenticiqa.signatures.lexicon import Meaning, Term, terms_in
from agenticiqa.signatures.vocabulary import DETECTABLE, everyday_name

SURE, NAMED = 0.7, 0.6  # minimum probabilities of the intent, and of the distortion
OF_ALL = 0.7  # minimum probability that a question is about the whole image if some words may name a part of it
OF_WHOLE = 0.85  # the same probability if the words do name a part of it
OF_SCALE = 0.4  # minimum probability of a rating if the question states a scale and its best end
OF_ANY = 0.8  # minimum probability of "which" if no word names a flaw or quality: "Describe what they are doing"

BRIEF = 3  # words of a question that has no meaning without its options
OF_OTHER = 0.8  # minimum probability that no measurement determines which option fits

WHOLE = frozenset(
    {"yes", "no", "degree", "which", "metric", "rating-high", "rating-low", "reference-yes", "reference-no"}
    | {"compare-image", "compare-reference", "compare-category"}
)

Subject = Literal["image", "part", "reference", "both"]
_ABOUT: Mapping[str, Subject] = {"part": "part", "reference": "reference", "compare": "both"}
_BEFORE = r"\b(?:the|top|bottom|upper|lower|far|extreme|my|its|or)[ -]"
_OF_PART = r"(?:[- ]hand)?[- ](?:half|side|part|edge|corner|third|quarter|quadrant|bit|portion|section|area|end|border)"
_SIDES = {
    "top": re.compile(r"\b(?:top|upper|uppermost|above)\b", re.I),
    "bottom": re.compile(r"\b(?:bottom|lower|lowermost|below|down|foot)\b", re.I),
    "left": re.compile(rf"{_BEFORE}left\b|\bleft{_OF_PART}|\bleft(?: |-)?(?:or|/|and) ?right\b", re.I),
    "right": re.compile(rf"{_BEFORE}right\b|\bright{_OF_PART}|\bleft ?(?:or|/) ?right\b", re.I),
}
_CENTER = re.compile(r"\b(?:cent(?:er|re|ral)|middle)\b", re.I)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")
_NOT = re.compile(r"\b(?:not|no|without|free (?:of|from)|never|lack\w*)\b", re.I)
_LESS = re.compile(r"\b(?:least|less|fewe[rs]t?|lowest|weakest|not)\b", re.I)
_WORSE, _BETTER = re.compile(r"\bworse\b", re.I), re.compile(r"\bbetter\b", re.I)
_WHICH = re.compile(r"\W*(?:which|what)\b", re.I)
_HOW = re.compile(r"\bhow\b", re.I)
_WHY = re.compile(r"^\W*(?:please )?(?:why|explain|describe)\b", re.I)
_QUALITY = re.compile(
    r"\bquality\b|\b(?:good|bad|poor|great|terrible|awful|excellent) (?:image|photo\w*|picture|pic|shot)\b"
    r"|\b(?:image|photo\w*|picture|pic|shot|it) (?:good|bad)\b",
    re.I,
)


@dataclass(frozen=True)
class Asked:
    """The parsed question: the intent (a key of ``answer.ANSWERS``, "" if unclear), the subject and the image part.

    ``fault`` is the distortion in question, or any; ``None`` if unclear. If ``is_denial``, the answer is "No" when the
    distortion is present. ``regions`` are the named parts, ``options`` the allowed answers by letter, and ``text`` is
    the question without them, with corrected spelling.
    """

    what: str
    subject: Subject
    fault: Meaning | None
    is_denial: bool
    regions: tuple[str, ...]
    options: Mapping[str, str]
    text: str
    scale: RatingScale | None = None

    @property
    def terms(self) -> list[Term]:
        """The words for distortions and for the quality in the question."""
        return terms_in(self.text)

    @property
    def senses(self) -> set[str]:
        """The senses of these words: fault, virtue, neutral or more."""
        return {term.meaning.sense for term in self.terms}

    @property
    def named(self) -> list[Meaning]:
        """The distortions that the question names."""
        return [term.meaning for term in self.terms if term.meaning.is_about_distortions]


def read_question(query: str, options: Mapping[str, str], regions: Sequence[str], listed: bool) -> Asked:
    """Parse the question in a query.

    ``options`` are the offered answers, by letter. If ``listed``, the network reads them with the question, which they
    may complete. ``regions`` are the named parts of the image, if known.
    """
    text = corrected(question_alone(query)[:LONGEST_TEXT])
    options = {letter: corrected(option) for letter, option in options.items()}
    words, new = _in_trained_words(text)
    reading = read_text(listing(words, options if listed else {}))
    of_part = bool(regions) and (reading.intent.name == "unanswerable" or reading.intent.probability < SURE)
    if of_part:
        reading = read_text(listing(_with_parts_as_image(words, regions), options if listed else {}))
    fault = new or _fault(text, reading.meaning)
    scale = stated_scale(query)
    best = scale.best if scale else None
    sure = OF_SCALE if best and reading.intent.name.startswith("rating") else SURE
    name = reading.intent.name if reading.intent.probability >= sure else ""
    place = side_named(text)
    parts = tuple(regions) or ((place,) if place else ())
    if len(parts) > 1 and place in parts:
        parts = (place,)
    if (not name or (options and listed and len(text.split()) <= BRIEF)) and scale is None:
        name = _intent_by_words(text, options if listed else {}, reading)
    asks_which = name in ("which", "compare-category")
    if asks_which and not options and reading.intent.probability < OF_ANY and not terms_in(text):
        name = ""
    about, _, what = name.rpartition("-") if name.startswith(("part-", "reference-", "compare-")) else ("", "", name)
    subject: Subject = _ABOUT.get(about, "image")
    if subject == "image" and parts and (of_part or not _is_about_whole(reading)):
        subject = "part"
    if subject == "part" and not parts:
        # A part without a name is the whole image, except in comparisons such as "noisier than the sea".
        subject, what = "image", "" if re.search(r"\bthan\b", text) else what
    is_denial = what == "no"
    if what in ("yes", "no"):
        what = "presence"
    if name.startswith("rating"):
        what, scale = "rating", _scale(text, scale, name.removeprefix("rating-"))
    if subject == "both":
        what = f"compare-{what}"
    return Asked(what, subject, fault, is_denial, parts if subject == "part" else (), options, text, scale)


def question_alone(query: str) -> str:
    """Return the words of a query without its options; "" if nothing else remains."""
    question = question_part(query)
    return "" if question == without_instructions(query) and parse_options(query) else question


def _intent_by_words(text: str, options: Mapping[str, str], reading: Reading) -> str:
    """Return the intent if the network is unsure but the words for distortions are clear; "" otherwise."""
    terms = terms_in(text)
    if _WHY.search(text) and (terms or _QUALITY.search(text)):
        return "which"
    is_other = reading.intent.name == "unanswerable"
    if options:  # they determine the question, completely if it is brief, such as "What is it?"
        is_other = is_other and len(text.split()) > BRIEF
        return "" if is_other and reading.intent.probability >= OF_OTHER else "which"
    kinds = {(term.meaning.scale, term.meaning.kind) for term in terms}
    senses = {term.meaning.sense for term in terms}
    if len(kinds) > 1 and senses == {"fault"}:
        if _WHICH.match(text):
            return "which"
        return "degree" if len({scale for scale, _ in kinds}) == 1 else "yes"  # "too dark or too bright?"
    extent = EXTENT.get(reading.intent.name)
    assessed = senses - {"neutral"}
    if not assessed and extent == "compare":
        assessed = {"fault"} if _WORSE.search(text) else {"virtue"} if _BETTER.search(text) else set()
    if len(kinds) > 1 or len(assessed) != 1 or reading.intent.category < NAMED:
        return ""
    praised = ("virtue" in assessed) != bool(_LESS.search(text))
    if extent == "half":
        return "half-clean" if praised else "half"
    if extent == "compare":
        return "compare-no" if praised else "compare-yes"
    if extent != "whole" or not terms:
        return ""
    return "degree" if _HOW.search(text) else "no" if ("virtue" in assessed) != bool(_NOT.search(text)) else "yes"


def _in_trained_words(text: str) -> tuple[str, Meaning | None]:
    """Replace a distortion that the network was not trained on by one that it was; return the text and the former."""
    new = [term for term in terms_in(text) if term.meaning.subject in {*DETECTABLE} - _learned()]
    for term in new:
        text = text.replace(term.text, everyday_name(NOISE))
    return text, new[0].meaning if new else None


@cache
def _learned() -> frozenset[str]:
    return frozenset(fault.subject for fault in FAULTS.values())


def _with_parts_as_image(text: str, regions: Sequence[str]) -> str:
    """Replace the names of parts by "image", because the network does not know which parts were located."""
    for region in sorted(regions, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(region)}(?:'s)?(?!\w)", "image", text, flags=re.I)
    return text


def _fault(text: str, read: Read) -> Meaning | None:
    """Return the distortion in question, with the kind that the words name; any distortion if none is named."""
    words = [term.meaning for term in terms_in(text) if term.meaning.is_about_distortions]
    if read.name == NONE and read.probability >= NAMED and not words:
        return Meaning("any", "fault")
    name = read.name if read.probability >= NAMED else MAIN_KIND.get(read.name, "") if read.category >= NAMED else ""
    fault = fault_named(name)
    if fault is None:
        of_any = any(term.meaning.subject == "any" for term in terms_in(text))
        one = len({word.scale for word in words}) == 1
        return Meaning(words[0].subject, "fault") if one else Meaning("any", "fault") if of_any else None
    kinds = {word.kind for word in words if word.sense == "fault" and {*word.categories} & {*fault.categories}} - {""}
    exact = kinds & HUES.keys() or (kinds if not fault.kind else set())
    if len(exact) == 1:
        return replace(fault, kind=exact.pop())
    if fault.subject == BLURS and any(word.subject == "clarity" for word in words):
        return Meaning("clarity", "fault")  # detail is lost by more than blur
    if words and not kinds and fault.subject in (BLURS, NOISE, COMPRESSION):
        return replace(fault, kind="")  # "focus" names no kind of blur
    return fault


def _is_about_whole(reading: Reading) -> bool:
    of_other = reading.intent.name.startswith("part-") or reading.intent.name == "unanswerable"
    return not of_other and reading.intent.category >= OF_ALL


def extent_of(text: str, options: Mapping[str, str]) -> Literal["whole", "part", ""]:
    """Return the extent that the network predicts for a question: the whole image or reference, or a part of it.

    "part" also covers questions that no measurement answers, such as those about an object that only a model finds.
    """
    intent = read_text(listing(_in_trained_words(text)[0], options)).intent
    if intent.name in WHOLE and intent.category >= OF_WHOLE:
        return "whole"
    return "part" if intent.name == "unanswerable" or intent.name.startswith("part-") else ""


def side_named(text: str) -> str:
    """Return the side, corner or middle of the image that a question names; "" for none or several."""
    sides = [side for side, pattern in _SIDES.items() if pattern.search(text)]
    if {"left", "right"} <= {*sides} or {"top", "bottom"} <= {*sides}:
        return ""
    return " ".join(sides) or ("center" if _CENTER.search(text) else "")


def _scale(text: str, stated: RatingScale | None, best: str) -> RatingScale | None:
    """Return the scale of a rating: as stated, or from the lowest to the highest number in the question."""
    if stated is None:
        numbers = sorted({float(number) for number in _NUMBER.findall(in_digits(text))})
        stated = RatingScale(numbers[0], numbers[-1]) if len(numbers) > 1 else None
    return stated if stated is None or stated.best else replace(stated, best="high" if best == "high" else "low")
