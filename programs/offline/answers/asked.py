"""Parse a question's intent, subject and image part with the network, and with the lexicon for exact words."""

import re
from collections.abc import Collection, Mapping, Sequence
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


@dataclass(frozen=True)
class LeastProbabilities:
    """The probabilities that the network must at least give to what it reads in a question.

    Attributes:
        intent: The intent.
        rating: An intent to rate, if the question states a scale and its best end.
        which: The intent "which", if no word names a flaw or quality: "Describe what they are doing".
        other: That no measurement determines which option fits.
        distortion: The distortion.
        whole: That a question is about the whole image, if some words may name a part of it.
        only_whole: The same, if the words do name a part of it.
    """

    intent: float
    rating: float
    which: float
    other: float
    distortion: float
    whole: float
    only_whole: float


LEAST = LeastProbabilities(intent=0.7, rating=0.4, which=0.8, other=0.8, distortion=0.6, whole=0.7, only_whole=0.85)
BRIEF = 3  # words of a question that has no meaning without its options

WHOLE = frozenset(
    {"yes", "no", "degree", "which", "metric", "rating-high", "rating-low", "reference-yes", "reference-no"}
    | {"compare-image", "compare-reference", "compare-category"}
)

Subject = Literal["image", "part", "reference", "both"]
_ABOUT: Mapping[str, Subject] = {"part": "part", "reference": "reference", "compare": "both"}
_RATING: Mapping[str, Literal["high", "low"]] = {"rating-high": "high", "rating-low": "low"}  # best ends of the scale
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
_THAN = re.compile(r"\bthan\b")
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
    shown = options if listed else {}
    words, new = _in_trained_words(text)
    reading = read_text(listing(words, shown))
    is_unclear = reading.intent.name == "unanswerable" or reading.intent.probability < LEAST.intent
    names_part = bool(regions) and is_unclear
    if names_part:
        reading = read_text(listing(_with_parts_as_image(words, regions), shown))
    scale = stated_scale(query)
    stated, what = _split(_intent(text, options, shown, reading, scale))
    parts = _parts(text, regions)
    subject = stated
    if stated == "image" and parts and (names_part or not _is_about_whole(reading)):
        subject = "part"
    if stated == "part" and not parts:
        # A part without a name is the whole image, except in comparisons such as "noisier than the sea".
        subject, what = "image", "" if _THAN.search(text) else what
    return Asked(
        what=_key(subject, what),
        subject=subject,
        fault=new or _fault(text, reading.meaning),
        is_denial=what == "no",
        regions=parts if subject == "part" else (),
        options=options,
        text=text,
        scale=_scale(text, scale, _RATING[what]) if what in _RATING else scale,
    )


def _intent(
    text: str, options: Mapping[str, str], shown: Mapping[str, str], reading: Reading, scale: RatingScale | None
) -> str:
    """Return the intent of a question, from the network if it is sure and else by words; "" if it is unclear.

    ``shown`` are the options that the network has read.
    """
    if sum(not mark.isascii() for mark in text) > len(text) / 2:  # a script that the network has never seen
        return ""
    name, probability = reading.intent.name, reading.intent.probability
    has_best = scale is not None and bool(scale.best)
    is_sure = probability >= (LEAST.rating if has_best and name.startswith("rating") else LEAST.intent)
    is_completed = bool(shown) and len(text.split()) <= BRIEF
    if scale is None and (is_completed or not is_sure):
        name = _intent_by_words(text, shown, reading)
    elif not is_sure:
        name = ""
    asks_which = name in ("which", "compare-category")
    if asks_which and not options and probability < LEAST.which and not terms_in(text):
        return ""
    return name


def _split(intent: str) -> tuple[Subject, str]:
    """Return the subject that an intent names, and what is asked about it: "part-yes" asks "yes" about a part."""
    about, _, what = intent.partition("-")
    return (_ABOUT[about], what) if about in _ABOUT else ("image", intent)


def _key(subject: Subject, what: str) -> str:
    """Return the key in ``answer.ANSWERS`` for what is asked about a subject."""
    if what in ("yes", "no"):
        what = "presence"
    elif what in _RATING:
        what = "rating"
    return f"compare-{what}" if subject == "both" else what


def _parts(text: str, regions: Sequence[str]) -> tuple[str, ...]:
    """Return the parts that a question is about: the known regions, or only the side that its words name."""
    place = side_named(text)
    if place and (not regions or place in regions):
        return (place,)
    return tuple(regions)


def question_alone(query: str) -> str:
    """Return the words of a query without its options; "" if nothing else remains."""
    question = question_part(query)
    return "" if question == without_instructions(query) and parse_options(query) else question


def _intent_by_words(text: str, shown: Mapping[str, str], reading: Reading) -> str:
    """Return the intent if the network is unsure but the words for distortions are clear; "" otherwise."""
    terms = terms_in(text)
    if _WHY.search(text) and (terms or _QUALITY.search(text)):
        return "which"
    if shown:  # they determine the question, completely if it is brief, such as "What is it?"
        is_other = reading.intent.name == "unanswerable" and len(text.split()) > BRIEF
        return "" if is_other and reading.intent.probability >= LEAST.other else "which"
    kinds = {(term.meaning.scale, term.meaning.kind) for term in terms}
    senses = {term.meaning.sense for term in terms}
    if len(kinds) > 1:
        return _intent_of_several(text, {scale for scale, _ in kinds}) if senses == {"fault"} else ""
    extent = EXTENT.get(reading.intent.name)
    assessed = senses - {"neutral"}
    if not assessed and extent == "compare":
        assessed = {"fault"} if _WORSE.search(text) else {"virtue"} if _BETTER.search(text) else set()
    if len(assessed) != 1 or reading.intent.category < LEAST.distortion:
        return ""
    return _intent_of_one(text, extent, assessed == {"virtue"})


def _intent_of_several(text: str, scales: Collection[str]) -> str:
    """Return the intent of a question that names several faults, on these scales: "too dark or too bright?"."""
    if _WHICH.match(text):
        return "which"
    return "degree" if len(scales) == 1 else "yes"


def _intent_of_one(text: str, extent: str | None, is_virtue: bool) -> str:
    """Return the intent of a question that names one fault or virtue, by its ``EXTENT``; "" if that is unclear."""
    is_least = is_virtue != bool(_LESS.search(text))
    if extent == "half":
        return "half-clean" if is_least else "half"
    if extent == "compare":
        return "compare-no" if is_least else "compare-yes"
    if extent != "whole":
        return ""
    if _HOW.search(text):
        return "degree"
    return "no" if is_virtue != bool(_NOT.search(text)) else "yes"


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
    if read.name == NONE and read.probability >= LEAST.distortion and not words:
        return Meaning("any", "fault")
    name = ""
    if read.probability >= LEAST.distortion:
        name = read.name
    elif read.category >= LEAST.distortion:
        name = MAIN_KIND.get(read.name, "")
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
    return not of_other and reading.intent.category >= LEAST.whole


def extent_of(text: str, options: Mapping[str, str]) -> Literal["whole", "part", ""]:
    """Return the extent that the network predicts for a question: the whole image or reference, or a part of it.

    "part" also covers questions that no measurement answers, such as those about an object that only a model finds.
    """
    intent = read_text(listing(_in_trained_words(text)[0], options)).intent
    if intent.name in WHOLE and intent.category >= LEAST.only_whole:
        return "whole"
    return "part" if intent.name == "unanswerable" or intent.name.startswith("part-") else ""


def side_named(text: str) -> str:
    """Return the side, corner or middle of the image that a question names; "" for none or several."""
    sides = [side for side, pattern in _SIDES.items() if pattern.search(text)]
    if {"left", "right"} <= {*sides} or {"top", "bottom"} <= {*sides}:
        return ""
    return " ".join(sides) or ("center" if _CENTER.search(text) else "")


def _scale(text: str, stated: RatingScale | None, best: Literal["high", "low"]) -> RatingScale | None:
    """Return the scale of a rating: as stated, or from the lowest to the highest number in the question."""
    if stated is None:
        numbers = sorted({float(number) for number in _NUMBER.findall(in_digits(text))})
        stated = RatingScale(numbers[0], numbers[-1]) if len(numbers) > 1 else None
    return stated if stated is None or stated.best else replace(stated, best=best)
