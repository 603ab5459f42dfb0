"""A question asked again in words that the rules know, once it is clear what it asks for and of which distortion."""

import re
from dataclasses import dataclass

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.claims import Clause
from agenticiqa.programs.offline.language.measured_image import HUES
from agenticiqa.programs.offline.language.question_reader import (
    KINDS,
    NONE,
    NOUNS,
    Read,
    Reading,
    fault_named,
    main_kind,
)
from agenticiqa.programs.questions.scale import in_digits, stated_scale
from agenticiqa.signatures.lexicon import terms_in

RESTATED, NAMED = 0.7, 0.6  # least probability of the intent and of the distortion
OPEN = 0.8  # of the intent where no word names a fault or the quality, as in "Describe what they are doing"
OF_SCALE = 0.4  # of the intent where a scale is stated, and which of its ends is the best
OF_ANY = ("which", "compare-category")
OF_PARTS = ("yes", "degree", "which")  # what may be asked of a part, too
OF_CLAIMS = ("yes", "part-yes", "degree", "part-degree")  # of which the rules know more; "any" of the first two
SEVERE = 3.0  # severity from which a degree is a least one: "slight" and "moderate" are meant exactly
OF_ALL = 0.7  # least probability that a question is about the whole image where some words may name a part of it
_WORDS = {
    "yes": "Is there {noun}?",
    "degree": "How severe is the {noun}?",
    "which": "What is the main distortion?",
    "where": "Where is the {noun}?",
    "half": "Which half has more {noun}, {halves}?",
    "half-clean": "Which half has less {noun}, {halves}?",
    "part-yes": "Is there {noun} in {part}?",
    "part-degree": "How severe is the {noun} in {part}?",
    "part-which": "What is the main distortion in {part}?",
    "compare-yes": "Is there more {noun} than in the reference?",
    "compare-image": "Which has more {noun}, the image or the reference?",
    "compare-reference": "Which has less {noun}, the image or the reference?",
    "compare-category": "What is the main distortion compared with the reference?",
    "reference-yes": "Is there {noun} in the reference?",
    "rating-high": "Rate the {noun} from {low} to {high}, where {high} is the best and {low} the worst.",
    "rating-low": "Rate the {noun} from {low} to {high}, where {low} is the best and {high} the worst.",
}
_OF_PART = r"(?:[- ]hand)?[- ](?:half|side|part|edge|corner|third|quarter|quadrant|bit|portion|section|area|end|border)"
_BEFORE = r"\b(?:the|top|bottom|upper|lower|far|extreme|my|its|or)[ -]"
_SIDES = {
    "left": re.compile(rf"{_BEFORE}left\b|\bleft{_OF_PART}|\bleft(?: |-)?(?:or|/|and) ?right\b", re.I),
    "right": re.compile(rf"{_BEFORE}right\b|\bright{_OF_PART}|\bleft ?(?:or|/) ?right\b", re.I),
    "top": re.compile(r"\b(?:top|upper|uppermost|above)\b", re.I),
    "bottom": re.compile(r"\b(?:bottom|lower|lowermost|below|down|foot)\b", re.I),
}
_CENTER = re.compile(r"\b(?:cent(?:er|re|ral)|middle)\b", re.I)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")


@dataclass(frozen=True)
class PlainQuestion:
    """A question in plain words, of a part of the image if it has a ``part``.

    If it ``is_denial``, "No" to it means "Yes" to the question that was asked.
    """

    text: str
    is_denial: bool
    part: str


def in_plain_words(question: str, reading: Reading, regions: tuple[str, ...], claim: Clause) -> PlainQuestion | None:
    """The question in plain words; ``None`` if it is not clear what it asks, or of which distortion or part.

    ``regions`` are the parts of the image that the rules find in it, and ``claim`` is what it says by them: a hue, a
    degree and "any" are kept from that.
    """
    scale = stated_scale(question) if reading.intent.name.startswith("rating") else None
    best = scale.best if scale else None
    name = reading.intent.name if reading.intent.probability >= (OF_SCALE if best else RESTATED) else ""
    if is_denial := name.endswith("no"):
        name = f"{name.removesuffix('no')}yes"
    part = ""
    if name in OF_PARTS and regions and not asks_of_all(reading):
        name = f"part-{name}"
    if name.startswith("part-") and not (part := _part(question, regions)):
        return None
    if name in OF_ANY and reading.intent.probability < OPEN and not terms_in(question):
        return None
    if name and best:  # in words: surer than the network
        name = f"rating-{best}"
    words, noun = _WORDS.get(name, ""), noun_for(reading.meaning)
    if name.startswith("rating") and reading.meaning.name == NONE:
        noun = "quality"
    if not words or ("{noun}" in words and not noun):
        return None
    ends = scale_ends(question) if name.startswith("rating") else (0, 0)
    if ends is None:
        return None
    if name in OF_CLAIMS:
        noun = _as_claimed(noun, reading.meaning, claim)
    if name in OF_CLAIMS[:2]:
        noun = f"{_amount(claim)} {noun}".strip()
    text = words.format(noun=noun, halves=_halves(question), part=part, low=f"{ends[0]:g}", high=f"{ends[1]:g}")
    return PlainQuestion(text, is_denial, part)


def asks_of_all(reading: Reading) -> bool:
    """Whether a question is about the whole image, whatever parts of it the rules find in its words."""
    of_other = reading.intent.name.startswith("part-") or reading.intent.name == "unanswerable"
    return not of_other and reading.intent.category >= OF_ALL


def noun_for(meaning: Read) -> str:
    """Words for the distortion that is meant, for its category where its kind is not clear; "" if neither is."""
    if meaning.probability >= NAMED:
        return NOUNS.get(meaning.name, "")
    return NOUNS[KINDS[meaning.name]] if meaning.name in KINDS and meaning.category >= NAMED else ""


def _as_claimed(noun: str, meaning: Read, claim: Clause) -> str:
    """The noun, or a word that is more exact (a hue, a kind of noise) or wider (detail, which blur is not all of)."""
    fault = fault_named(meaning.name)
    kinds = {each.kind for each in claim.meanings if fault and set(each.categories) & set(fault.categories)} - {""}
    exact = kinds & HUES.keys() or (kinds if fault and not fault.kind else set())
    if len(exact) == 1:
        return exact.pop()
    of_detail = any(each.subject == "clarity" for each in claim.meanings)
    return "lack of detail" if of_detail and main_kind(meaning.name) == "blur" else noun


def _amount(claim: Clause) -> str:
    """How much is asked for by yes or no, in words of which each has one meaning in a plain question."""
    if claim.degree and claim.grades_fault and (claim.exact or claim.degree >= SEVERE):
        return severity_word(claim.degree).lower()
    return "any" if claim.absolute else ""


def _part(question: str, regions: tuple[str, ...]) -> str:
    """The one part that is named, in the words of the rules if they have found the same."""
    place = side_named(question)
    if not place:
        return regions[0] if len(regions) == 1 else ""
    return next((region for region in regions if side_named(f"the {region} part") == place), place)


def side_named(question: str) -> str:
    """The side, corner or middle of the image that a question names; "" for none or several."""
    found = [side for side, pattern in _SIDES.items() if pattern.search(question)]
    if {"left", "right"} <= set(found) or {"top", "bottom"} <= set(found):
        return ""
    if not found:
        return "center" if _CENTER.search(question) else ""
    return " ".join(sorted(found, key=lambda side: side in ("left", "right")))


def scale_ends(question: str) -> tuple[float, float] | None:
    """The lowest and the highest number of the scale that a question states."""
    if scale := stated_scale(question):
        return scale.low, scale.high
    numbers = sorted({float(number) for number in _NUMBER.findall(in_digits(question))})
    return (numbers[0], numbers[-1]) if len(numbers) > 1 else None


def _halves(question: str) -> str:
    across = _SIDES["left"].search(question) or _SIDES["right"].search(question)
    upright = _SIDES["top"].search(question) or _SIDES["bottom"].search(question)
    return "the top or the bottom" if upright and not across else "the left or the right"
