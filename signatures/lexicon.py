"""Recognize the words for distortions from ``categories`` in the answers of models and in questions.

A phrase can have a category of distortion (a model that writes "overexposed" means "Brightness change") and a meaning
in a question ("overexposed" finds fault with the brightness). Many have both. Words that are too vague for a category
("soft", "flat", "clean") only have a meaning; stems that name a category in many forms ("color*") only have a category.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from agenticiqa.signatures.categories import (
    BLURS,
    CATEGORIES,
    OTHER_WORDS,
    OVERSHARPENING,
    SHARPNESS,
    Category,
    Sense,
    Words,
)
from agenticiqa.signatures.vocabulary import (
    DETECTABLE,
    DISTORTIONS,
    SEVERITIES,
    SEVERITY_WORDS,
    DetectableDistortion,
    Distortion,
    Severity,
    closest,
)

Subject = str  # the name of a category, or "clarity" (blur and sharpness), "any" of them, "quality", "unmeasured"
T = TypeVar("T")

LONGEST_NAME = 500  # characters of a text that names one distortion or severity; longer texts are not searched
CLARITY: tuple[DetectableDistortion, ...] = (BLURS, SHARPNESS)
# The names of too much (UPPER) and too little (LOWER) of a property.
UPPER: dict[Subject, str] = {row.name: row.too_much for row in CATEGORIES if row.too_much} | {"clarity": OVERSHARPENING}
LOWER: dict[Subject, str] = {row.name: row.too_little for row in CATEGORIES if row.too_little}


@dataclass(frozen=True)
class Meaning:
    """The subject of a phrase, and its sense: fault ("blurry"), virtue ("sharp"), neutral ("focus"), or "more".

    ``kind`` restricts a fault to one kind of its category ("overexposure"). A virtue with a kind is the absence of that
    kind ("colorful": no desaturation). The sense ``"more"`` is a direction that is neither good nor bad ("bright").
    """

    subject: Subject
    sense: Sense
    kind: str = ""

    @property
    def categories(self) -> tuple[DetectableDistortion, ...]:
        """The categories that the subject covers; none for the overall quality and for what is not measured."""
        if self.subject == "clarity":
            return CLARITY
        if self.subject == "any":
            return DETECTABLE
        if self.subject == "quality" or self.subject == "unmeasured":
            return ()
        return (self.subject,)

    @property
    def is_about_distortions(self) -> bool:
        """Whether the subject is a kind of damage, also one that is not measured; "quality" and "damage" are none."""
        return self.subject not in ("quality", "any")

    @property
    def scale(self) -> Subject:
        """The scale that the subject is on: blur and sharpness are on the same one, blur and noise are not."""
        return "clarity" if self.subject in CLARITY else self.subject


@dataclass(frozen=True)
class Term:
    """A phrase with a meaning, found in a text at ``[start, end)``."""

    text: str
    start: int
    end: int
    meaning: Meaning


def phrase_pattern(phrase: str) -> str:
    """Return the regular expression of a phrase in the notation of the lexicon."""
    words = re.split(r"[\s-]+", phrase.strip().replace("color", "colou?r").replace("*", r"\w*"))
    return r"[\s-]+".join(words)


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the phrases as whole words; longer ones take precedence."""
    ordered = sorted(phrases, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(phrase_pattern, ordered))})(?!\w)", re.I)


@dataclass(frozen=True)
class _Match(Generic[T]):
    start: int
    end: int
    value: T


def phrases_of(listed: str) -> list[str]:
    """Return the phrases of a row, which are separated by commas."""
    return [" ".join(phrase.split()) for phrase in listed.split(",") if phrase.strip()]


def _patterns(column: Iterable[tuple[T, str]]) -> dict[T, re.Pattern[str]]:
    phrases: dict[T, list[str]] = {}
    for value, listed in column:
        phrases.setdefault(value, []).extend(phrases_of(listed))
    return {value: any_of(texts) for value, texts in phrases.items()}


@cache  # a pattern compiled on first use, because it takes longer than most imports
def _categories() -> dict[Distortion, re.Pattern[str]]:
    return _patterns((row.name, words.phrases) for row in CATEGORIES for words in row.words)


@cache
def _meanings() -> dict[Meaning, re.Pattern[str]]:
    rows = [*((row.name, row.words) for row in CATEGORIES), ("", OTHER_WORDS)]
    return _patterns(
        (Meaning(words.subject or name, words.sense, words.kind), f"{words.phrases},{words.vague}")
        for name, listed in rows
        for words in listed
        if words.sense
    )


@dataclass(frozen=True)
class _Claim:
    """A phrase, the row that has it, and what the row makes of it: a category, and in a question a meaning."""

    phrase: str
    row: str
    category: Subject
    meaning: Meaning | None = None

    def contradicts(self, other: "_Claim") -> bool:
        """Return whether the other claim is to something else."""
        both = self.meaning is not None and other.meaning is not None
        return self.category != other.category or (both and self.meaning != other.meaning)


def check_claims(rows: Sequence[Category], others: Sequence[Words]) -> None:
    """Check that no two rows of the tables claim one phrase or one name for different things.

    A "*" stands for any ending, so "flaw*" and "flawless" are one phrase. Without this check, the first row would win.

    Raises ValueError, in one line, with the phrase and both rows.
    """
    by_beginning: dict[tuple[int, str], list[_Claim]] = {}
    for claim in _claims(rows, others):
        words = re.split(r"[\s-]+", claim.phrase.lower())
        rivals = by_beginning.setdefault((len(words), words[0][:2]), [])
        for rival in rivals:
            if claim.contradicts(rival) and _overlap(words, re.split(r"[\s-]+", rival.phrase.lower())):
                same = claim.phrase if claim.phrase == rival.phrase else f"{rival.phrase} / {claim.phrase}"
                raise ValueError(_two_rows(f"phrase '{same}'", rival.row, claim.row))
        rivals.append(claim)
    _check_names("subtype", [(subtype.name, row.name) for row in rows for subtype in row.subtypes])
    _check_names("kind of eval.research.distort", [(kind, row.name) for row in rows for kind in row.kinds])
    _check_names("sign", [(sign, row.name) for row in rows for sign in phrases_of(row.signs)])
    _check_names("output", [(name, row.name) for row in rows for words in row.words for name in words.read_as])


def _claims(rows: Sequence[Category], others: Sequence[Words]) -> Iterator[_Claim]:
    listed = [*((row.name, row.words) for row in rows), ("", others)]
    for name, words in ((name, words) for name, of_row in listed for words in of_row):
        meaning = Meaning(words.subject or name, words.sense, words.kind) if words.sense else None
        row = f"{name or 'OTHER_WORDS'} ({', '.join(filter(None, (words.sense, words.kind))) or 'its names'})"
        for phrase in phrases_of(f"{words.phrases},{words.vague}"):
            yield _Claim(phrase, row, name, meaning)
    for category in rows:
        for name in (category.name, category.everyday, *(subtype.name for subtype in category.subtypes)):
            yield _Claim(name, f"{category.name} (the name '{name}')", category.name)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether some text matches both phrases, given as their words."""
    for word, rival in zip(one, other, strict=True):
        stem, rival_stem = word.removesuffix("*"), rival.removesuffix("*")
        fits_rival = word == rival or (rival != rival_stem and stem.startswith(rival_stem))
        if not fits_rival and not (word != stem and rival_stem.startswith(stem)):
            return False
    return True


def _check_names(what: str, named: Iterable[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for name, owner in named:
        if name in owners:
            raise ValueError(_two_rows(f"{what} '{name}'", owners[name], owner))
        owners[name] = owner


def _two_rows(claimed: str, first: str, second: str) -> str:
    return f"signatures/categories.py: two rows claim the {claimed}: {first} and {second}; keep it in one"


check_claims(CATEGORIES, OTHER_WORDS)

_SEVERITY_OF = {word: severity for severity in SEVERITIES for word in SEVERITY_WORDS[severity]}


def _longest(text: str, patterns: dict[T, re.Pattern[str]]) -> list[_Match[T]]:
    """Return every phrase of a text, in order of appearance; if two overlap, the longer one."""
    matches = [
        _Match(match.start(), match.end(), value)
        for value, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]
    kept: list[_Match[T]] = []
    taken = bytearray(len(text))
    for match in sorted(matches, key=lambda match: (match.start - match.end, match.start)):
        if not any(taken[match.start : match.end]):
            kept.append(match)
            taken[match.start : match.end] = bytes([1]) * (match.end - match.start)
    return sorted(kept, key=lambda match: match.start)


def terms_in(text: str) -> list[Term]:
    """Return the phrases of a text that have a meaning, in order; if two overlap, the longer one.

    >>> [(term.text, term.meaning.kind) for term in terms_in("Too dark, or motion blur?")]
    [('Too dark', 'underexposure'), ('motion blur', 'motion blur')]
    """
    matches = _longest(text, _meanings())
    return [Term(text[match.start : match.end], match.start, match.end, match.value) for match in matches]


def distortions_in(text: str) -> list[tuple[str, Distortion]]:
    """Return the phrases of a text that name a category, with it, in order; if two overlap, the longer one.

    >>> distortions_in("Motion blur or a grainy sky?")
    [('Motion blur', 'Blurs'), ('grainy', 'Noise')]
    """
    return [(text[match.start : match.end], match.value) for match in _longest(text, _categories())]


def fold_distortion(word: str) -> Distortion | None:
    """Return the category of a word, or ``None``: ``"Brightness change"`` for ``"overexposed"``."""
    phrases = distortions_in(word)
    return phrases[0][1] if phrases else None


def fold_severity(word: str) -> Severity | None:
    """Return the severity of a word, or ``None``: ``"severe"`` for ``"heavy"``."""
    return _SEVERITY_OF.get(" ".join(word.lower().split()))


_DENIED = re.compile(r"\b(?:no|not|non|without|free|none|absent|absence)\b", re.IGNORECASE)


def folded_distortion(value: Any) -> Any:
    """Return the category that a text names; a text that names none, or denies one, is unchanged."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or value in DISTORTIONS:
        return value
    phrases = distortions_in(value)
    if not phrases:
        return closest(value, DISTORTIONS) or value
    phrase, category = phrases[0]
    return value if _DENIED.search(value.replace(phrase, "", 1)) else category


def folded_severity(value: Any) -> Any:
    """Return the severity that a text names; any other text is unchanged."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        return value
    return fold_severity(value) or closest(value, SEVERITIES) or value


_DOUBT = re.compile(r"\b(uncertain|unclear|not sure|cannot tell|can't tell|hard to tell|impossible to tell)\b", re.I)


def states_doubt(text: str) -> bool:
    """Return whether a text says that its author is uncertain, in one of a few words.

    It is for answers without a field that says so. The words of doubt are many, and this list does not grow.
    """
    return _DOUBT.search(text) is not None
