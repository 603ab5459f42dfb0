"""Parse a question's intent, subject and image part with the network, and with the lexicon for exact words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from agenticiqa.programs.offline.answers.question_reader import (
    EXTENT,
    KINDS,
    LONGEST_TEXT,
    NONE,
    NOUNS,
    Read,
    Reading,
    corrected,
    fault_named,
    listing,
    main_kind,
    read_text,
)
from agenticiqa.programs.offline.measured.findings import HUES
from agenticiqa.programs.questions.instructions import without_instructions
from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.questions.scale import RatingScale, in_digits, stated_scale
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE
from agenticiqa.signatures.lexicon import Meaning, Term, terms_in
from agenticiqa.signatures.vocabulary import DETECTABLE

SURE, NAMED = 0.7, 0.6  # least probability of what is asked, and of what it is about
OF_ALL = 0.7  # least probability that a question is about the whole image where some words may name a part of it
OF_WHOLE = 0.85  # the same, where the words do name a part of it
OF_SCALE = 0.4  # the same, that a number is asked for where a scale is stated, and which of its ends is the best
OF_ANY = 0.8  # least probability of "which" where no word names a fault or the quality: "Describe what they are doing"

BRIEF = 3  # words of a question that says nothing without its options
OF_OTHER = 0.8  # least probability that no measurement tells which of the options fits

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
        """The words for distortions and for the quality in it."""
        return terms_in(self.text)

    @property
    def senses(self) -> set[str]:
        """What these words do: find fault, praise, or neither."""
        return {term.meaning.sense for term in self.terms}

    @property
    def named(self) -> list[Meaning]:
        """The distortions that it names."""
        return [term.meaning for term in self.terms if term.meaning.subject not in ("any", "quality")]


def read_question(query: str, options: Mapping[str, str], regions: Sequence[str], listed: bool) -> Asked:
    """The question that a query asks.

    ``options`` are the answers offered, by letter, of which some tell what is asked if they are ``listed`` with it.
    ``regions`` are the parts of the image that are named, as far as they are known.
    """
    text = corrected(question_alone(query)[:LONGEST_TEXT])
    options = {letter: corrected(option) for letter, option in options.items()}
    shown, new = _in_known_words(text)
    reading = read_text(listing(shown, options if listed else {}))
    of_part = bool(regions) and (reading.intent.name == "unanswerable" or reading.intent.probability < SURE)
    if of_part:
        reading = read_text(listing(_of_image(shown, regions), options if listed else {}))
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
        name = _by_words(text, options if listed else {}, reading)
    asks_which = name in ("which", "compare-category")
    if asks_which and not options and reading.intent.probability < OF_ANY and not terms_in(text):
        name = ""
    about, _, what = name.rpartition("-") if name.startswith(("part-", "reference-", "compare-")) else ("", "", name)
    subject: Subject = _ABOUT.get(about, "image")
    if subject == "image" and parts and (of_part or not _is_about_all(reading)):
        subject = "part"
    if subject == "part" and not parts:
        # What is no part that can be named is all of it, but for "noisier than the sea".
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
    """The words of a query without its options; "" if it has no others."""
    asked = question_part(query)
    return "" if asked == without_instructions(query) and parse_options(query) else asked


def _by_words(text: str, options: Mapping[str, str], reading: Reading) -> str:
    """What is asked where the network is not sure, but the words for distortions are clear; "" otherwise."""
    terms = terms_in(text)
    if _WHY.search(text) and (terms or _QUALITY.search(text)):
        return "which"
    is_other = reading.intent.name == "unanswerable"
    if options:  # they say what is asked, and all of it after "What is it?"
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


def _in_known_words(text: str) -> tuple[str, Meaning | None]:
    """The question, of noise in place of a distortion that the network has not learned, and that distortion."""
    new = [term for term in terms_in(text) if term.meaning.subject in {*DETECTABLE} - _learned()]
    for term in new:
        text = text.replace(term.text, "noise")
    return text, new[0].meaning if new else None


@cache
def _learned() -> frozenset[str]:
    return frozenset(fault.subject for name in NOUNS if (fault := fault_named(name)))


def _of_image(text: str, regions: Sequence[str]) -> str:
    """The question asked of the whole image: the network does not know which parts were found."""
    for region in sorted(regions, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(region)}(?:'s)?(?!\w)", "image", text, flags=re.I)
    return text


def _fault(text: str, read: Read) -> Meaning | None:
    """The distortion that is meant, of the kind that the words name; any where the network reads that none is named."""
    named = [term.meaning for term in terms_in(text) if term.meaning.subject not in ("any", "quality")]
    if read.name == NONE and read.probability >= NAMED and not named:
        return Meaning("any", "fault")
    name = read.name if read.probability >= NAMED else KINDS.get(read.name, "") if read.category >= NAMED else ""
    fault = fault_named(name)
    if fault is None:
        of_any = any(term.meaning.subject == "any" for term in terms_in(text))
        one = len({each.scale for each in named}) == 1
        return Meaning(named[0].subject, "fault") if one else Meaning("any", "fault") if of_any else None
    kinds = {each.kind for each in named if each.sense == "fault" and {*each.categories} & {*fault.categories}} - {""}
    exact = kinds & HUES.keys() or (kinds if not fault.kind else set())
    if len(exact) == 1:
        return replace(fault, kind=exact.pop())
    if main_kind(name) == "blur" and any(each.subject == "clarity" for each in named):
        return Meaning("clarity", "fault")  # of detail, which blur is not all of
    if named and not kinds and fault.subject in (BLURS, NOISE, COMPRESSION):
        return replace(fault, kind="")  # "focus" is of no kind
    return fault


def _is_about_all(reading: Reading) -> bool:
    of_other = reading.intent.name.startswith("part-") or reading.intent.name == "unanswerable"
    return not of_other and reading.intent.category >= OF_ALL


def extent_of(text: str, options: Mapping[str, str]) -> Literal["whole", "part", ""]:
    """Return what the network reads a question to be about: the whole image or reference, or a part of it.

    "part" also covers what no measurement tells, such as questions about a thing that only a model finds.
    """
    intent = read_text(listing(_in_known_words(text)[0], options)).intent
    if intent.name in WHOLE and intent.category >= OF_WHOLE:
        return "whole"
    return "part" if intent.name == "unanswerable" or intent.name.startswith("part-") else ""


def side_named(text: str) -> str:
    """The side, corner or middle of the image that a question names; "" for none or several."""
    found = [side for side, pattern in _SIDES.items() if pattern.search(text)]
    if {"left", "right"} <= {*found} or {"top", "bottom"} <= {*found}:
        return ""
    return " ".join(found) or ("center" if _CENTER.search(text) else "")


def _scale(text: str, stated: RatingScale | None, best: str) -> RatingScale | None:
    """The scale of a rating: as stated, or from the lowest to the highest number of the question."""
    if stated is None:
        numbers = sorted({float(number) for number in _NUMBER.findall(in_digits(text))})
        stated = RatingScale(numbers[0], numbers[-1]) if len(numbers) > 1 else None
    return stated if stated is None or stated.best else replace(stated, best="high" if best == "high" else "low")
