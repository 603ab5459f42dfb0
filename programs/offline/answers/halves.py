"""Parse questions that compare two halves of the image by fixed words: "Is the left half less noisy than the right?".

The network of ``question_reader`` recognizes such questions, but not reliably in which direction they compare.
"""

import re
from dataclasses import dataclass, replace

from agenticiqa.programs.images.regions import PICTURES
from agenticiqa.signatures.categories import BRIGHTNESS, COLOR, CONTRAST
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, terms_in

TWO_SIDED = frozenset({BRIGHTNESS, COLOR, CONTRAST})  # both too much and too little of these is a flaw
_NAMES = {"upper": "top", "lower": "bottom"}
OPPOSITE = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
_PAIRS = [{*pair} for pair in OPPOSITE.items()]
AGAINST = "than|compared (?:to|with)|relative to"  # what comes before the other side of a comparison
_NOUN = "(?:half|side|part|portion|section)"
_HALF = re.compile(
    r"\b(?:(?:in|on|at|of) )?(?:(?:the|its) )?(?P<side>left|right|top|bottom|upper"
    rf"|lower(?= {_NOUN})|(?<=the )lower|(?<=or )lower)(?:[- ]hand(?= {_NOUN}))?\b"  # not "lower in contrast"
    rf"(?P<noun>(?: {_NOUN}\b)?(?: of (?:the|this|my) (?:{PICTURES})\b)?)",
    re.I,
)
# What follows a side without a noun; anything else is an object, as in "the top shelf".
_NO_OBJECT = re.compile(
    r" ?(?:$|[^\w\s]|(?:than|or|and|is|are|does|has|have|looks?|appears?|more|less|better|worse|compared|\w+er)\b)",
    re.I,
)
_OF_OBJECT = re.compile(r" of (?:the|this|that|my|his|her|their|an?)\b", re.I)
_HALVES = re.compile(rf"\b(?:half|halves|sides?)\b(?! of (?!(?:the|this|my) (?:{PICTURES})\b))", re.I)
_AGAINST = re.compile(rf"\b(?:{AGAINST}|in comparison (?:to|with))\b(?! the others?\b)", re.I)
_IS_IT = re.compile(r"(?:^|, )\W{0,5}(?:is|are|was|were|does|do|did|has|have|would)(?:n't)?\b|\b(?:if|whether)\b", re.I)
_WHICH = re.compile(
    r"^\W*(?:which|what) (?:of|half|side|part|one|is|are|has|have|looks?|shows?|appears?)\b|\bor\b", re.I
)
_OTHER = re.compile(r"\b(?:how|why|where|when|not|never|without|both|equally)\b|\b(?:ca|wo|could)n't\b", re.I)
_SUPERLATIVE = re.compile(r"\b(\w{3,})est\b", re.I)
_MORE = re.compile(r"\b(?:more|most|higher|highest|stronger|strongest|greater|greatest|heavier|heaviest)\b", re.I)
_LESS = re.compile(r"\b(?:less|least|fewer|fewest|lower|lowest|weaker|weakest|milder|mildest)\b", re.I)
# "More" of a word that is no property, such as "the colors are more weak".
_VAGUE = re.compile(
    r"\b(?:more|most|less|least) (?!(?:in|of|on|than|to|at|from|the|visible|noticeable|obvious|evident|apparent|severe"
    r"|strong|strongly|pronounced|intense|affected)\b)[a-z]",
    re.I,
)
_BETTER, _WORSE = re.compile(r"\b(?:better|best)\b", re.I), re.compile(r"\b(?:worse|worst)\b", re.I)


@dataclass(frozen=True)
class ComparedHalves:
    """A comparison of two halves: by which flaw or amount (sense "more"), and whether the half with the least counts.

    ``sides`` are the two halves if the question is whether the first has more, or less, than the second. Otherwise it
    asks which half has.
    """

    by: Meaning
    is_least: bool
    sides: tuple[str, str] | None = None


def compared_halves(text: str) -> ComparedHalves | None:
    """Return the comparison of halves that a question without its options asks for; ``None`` for any other question.

    >>> compared_halves("Is the left half less noisy than the right half?").sides
    ('left', 'right')
    """
    text = " ".join(text.split())
    mentions = [*_HALF.finditer(text)]
    named = {_side(mention) for mention in mentions}
    if named and (named not in _PAIRS or any(_is_of_object(text, mention) for mention in mentions)):
        return None
    rest = _HALF.sub(",", text)
    if _OTHER.search(rest):
        return None
    against = _AGAINST.search(text)
    if against and named and _IS_IT.search(text):
        after = [_side(mention) for mention in mentions if mention.start() >= against.end()]
        if not after:
            return None
        comparison = _compared_by(rest)
        return comparison and replace(comparison, sides=(OPPOSITE[after[0]], after[0]))
    if against or not _WHICH.search(text) or not (named or _HALVES.search(text)):
        return None
    return _compared_by(rest)


def _side(mention: re.Match[str]) -> str:
    name = mention["side"].lower()
    return _NAMES.get(name, name)


def _is_of_object(text: str, mention: re.Match[str]) -> bool:
    """Return whether a side is that of an object, not of the image: "the top shelf", "the left half of the house"."""
    following = text[mention.end() :]
    return bool(_OF_OBJECT.match(following)) or not (mention["noun"] or _NO_OBJECT.match(following))


def _compared_by(words: str) -> ComparedHalves | None:
    """Return what the words of a question compare, and in which direction; ``None`` unless it is one property."""
    words = _SUPERLATIVE.sub(r"\1er", words)
    terms = terms_in(words)
    unknown = words
    for term in terms:
        unknown = unknown.replace(term.text, ",")
    assessed = [term for term in terms if term.meaning.sense != "neutral"] or terms
    meanings = {term.meaning for term in assessed}
    marks = [bool(mark.search(words)) for mark in (_MORE, _LESS, _BETTER, _WORSE)]
    is_comparative = any(term.text.lower().endswith("er") for term in assessed)
    is_vague = _VAGUE.search(unknown) is not None
    if is_vague or len(meanings) > 1 or sum(marks) > 1 or not (any(marks) or is_comparative):
        return None
    _, is_less, is_better, is_worse = marks
    if not meanings and not (is_better or is_worse):
        return None
    meaning = meanings.pop() if meanings else Meaning("any", "fault")
    subject, sense = meaning.subject, meaning.sense
    if sense == "fault":
        return ComparedHalves(meaning, is_least=is_less or is_better)
    if subject == "quality":
        return ComparedHalves(Meaning("any", "fault"), is_least=not (is_less or is_worse))
    is_amount = sense == "neutral" and subject in TWO_SIDED and not (is_better or is_worse)
    if sense == "more" or is_amount or (sense == "virtue" and meaning.kind and meaning.kind == LOWER.get(subject)):
        return ComparedHalves(Meaning(subject, "more", UPPER[subject]), is_least=is_less or is_worse)
    return ComparedHalves(Meaning(subject, "fault", meaning.kind), is_least=not (is_less or is_worse))
