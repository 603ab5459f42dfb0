"""A clause of a question, or an option, read as a claim about the picture: what of, how much, and whether denied."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from agenticiqa.programs.offline.language.words import word_set
from agenticiqa.signatures.lexicon import Meaning, Term, any_of, terms_in
from agenticiqa.signatures.vocabulary import SEVERITIES, SEVERITY_WORDS

Comparison = Literal["better", "worse", "same", "more", "less"]

# How bad, 0..4: the vocabulary's words and these.
DEGREE_WORDS: dict[str, float] = {
    word: float(index) for index, severity in enumerate(SEVERITIES) for word in SEVERITY_WORDS[severity] if word != "no"
} | {
    phrase: degree
    for degree, phrases in {
        0.0: "barely, hardly, hardly any, barely noticeable, unnoticeable",
        0.5: "very slight, very slightly, very little, very mild, very low, very weak",
        1.0: "a bit, a little bit, bit, faint, faintly, slightly visible, slightly noticeable",
        2.0: "obvious, obviously, apparent, evident, perceptible, mid",
        3.0: "highly, intense, pronounced, excessive, excessively, much, very much, a lot, a lot of, lots of, "
        "clearly visible",
        4.0: "very high, very serious, totally, entirely, fully",
    }.items()
    for phrase in phrases.split(", ")
}
# How good, 1..5.
LEVEL_WORDS: dict[str, float] = {
    word: level
    for level, words in {
        5.0: "excellent, perfect, perfectly, superb, outstanding, exceptional, great, very good, very high, very rich",
        4.0: "good, well, fine, nice, high, strong, rich, satisfactory, sufficient, sufficiently, proper, properly, "
        "correct, correctly, right, accurate, natural, realistic, balanced, well balanced, appropriate, suitable, "
        "adequate, adequately, enough",
        3.0: "fair, average, medium, moderate, mediocre, normal, ordinary, okay, ok, acceptable, decent, so so, "
        "just right, neutral, mid, standard",
        2.0: "poor, poorly, bad, badly, low, weak, inferior, insufficient, insufficiently, inadequate, off, "
        "unnatural, unrealistic, inaccurate, incorrect, improper, unbalanced",
        1.0: "terrible, awful, horrible, unacceptable, unusable, very poor, very low, very bad, extremely poor, "
        "extremely bad, extremely low",
    }.items()
    for word in words.split(", ")
}
COMPARISONS: dict[str, Comparison] = {
    "better": "better", "improved": "better", "superior": "better", "enhanced": "better",
    "worse": "worse", "inferior": "worse", "worsened": "worse",
    "same": "same", "identical": "same", "equal": "same", "as good as": "same", "no difference": "same",
    "unchanged": "same", "similar": "same", "no change": "same",
    "more": "more", "higher": "more", "stronger": "more", "increased": "more",
    "decreased": "less", "less": "less", "fewer": "less", "lower": "less", "weaker": "less", "reduced": "less",
}  # fmt: skip

# Levels that rate a picture as a whole; the others rate only what they are said of ("natural colors").
_RATING_WORDS = (
    "excellent, perfect, superb, outstanding, exceptional, great, good, very good, fine, nice, fair, average, "
    "mediocre, okay, ok, acceptable, decent, so so, poor, very poor, bad, very bad, inferior, terrible, awful, "
    "horrible, unacceptable, unusable"
)
_DEGREE, _LEVEL, _COMPARISON = any_of(DEGREE_WORDS), any_of(LEVEL_WORDS), any_of(COMPARISONS)
_RATING = any_of(_RATING_WORDS.split(", "))
_NEGATION = any_of(["not", "not any", "no", "without", "free of", "free from", "never"])
_LACK = any_of(["lack*", "lack of", "lacking in", "loss of", "lose*", "losing", "lost", "missing", "not enough"])
_SUFFICIENT = any_of(["enough", "sufficient", "sufficiently", "adequate", "adequately"])
_INSUFFICIENT = any_of(["insufficient", "insufficiently", "inadequate", "not enough"])
_EXCESS = any_of(["too", "overly", "excessive", "excessively"])
_LIFELIKE = any_of(["natural", "unnatural", "realistic", "unrealistic"])
_STRESS = any_of(["very", "extremely", "highly", "perfectly", "completely", "totally", "really"])
_FLAT = any_of(["no", "without", "free of", "free from", "any", "some", "at all"])
_EXACT = any_of(["slight*", "mild*", "moderate*", "medium", "minor", "little", "bit", "light*"])

# Words that leave the claim as it is.
_FILLER = word_set(
    """
    a an the this that these those there here it it's its is are was were be been being am do does did has have
    had can could would will should you i we me my your us our to of in on at for with by from as so than too
    just quite rather really very fairly pretty relatively please tell say see seen find found spot detect
    observe notice around how's what's look looks looking appear appears appearing seem seems seemed show shows
    showed shown contain contains exhibit exhibits display displays suffer suffers suffering affected present
    include includes including having get got consider considered describe described describes call called rate
    rated how what which whether if yes all isn't aren't doesn't don't wasn't hasn't image images image's photo
    photos photograph photographs picture pictures pic shot frame snapshot screenshot whole entire overall
    general generally visual visually perceptual technical level levels amount degree extent strength severity
    severely effect effects kind kinds type types sort any some both either visible only mainly one ones edge
    edges condition terms term following given distorted opinion still also clearly visibly reference original
    answer option options best word choose select statement and or visibility presence preserved retained
    rendered reproduced anything something sensor digital film
    """
)


@dataclass(frozen=True)
class Reading:
    """What a clause says. ``unread`` holds the words that no list knows: with any, it is not wholly understood.

    ``degree`` is a severity 0..4 and ``level`` a quality 1..5; "high" and "low" are both. ``flat`` tells "no noise"
    from "not noisy" and "any noise" from "noise": whether there is any at all. ``exact`` marks a degree that is meant
    as it stands ("slight"), not as the least ("severe").
    """

    text: str
    terms: tuple[Term, ...]
    degree: float | None
    level: float | None
    comparison: Comparison | None
    negated: bool
    lacking: bool
    sufficient: bool
    insufficient: bool
    excess: bool
    stressed: bool
    flat: bool
    exact: bool
    unread: tuple[str, ...]

    @property
    def meanings(self) -> list[Meaning]:
        """What it speaks of, each once: what it finds fault with or praises if anything, else what it just names."""
        judged = [term.meaning for term in self.terms if term.meaning.sense != "neutral"]
        special = [meaning for meaning in judged if meaning.subject != "any"]
        plain = [term.meaning for term in self.terms if term.meaning.sense == "neutral"]
        named = [meaning for meaning in plain if meaning.subject != "quality"]
        if judged and not special:  # "anything wrong with the exposure"
            special = [replace(judged[0], subject=meaning.subject) for meaning in named]
        return list(dict.fromkeys(special or judged or named or plain))

    @property
    def rates_quality(self) -> bool:
        """Whether its level is one of the quality of the whole picture."""
        named = any(term.meaning.subject == "quality" for term in self.terms)
        return self.level is not None and (named or bool(_RATING.search(self.text)))

    @property
    def strays(self) -> bool:
        """Whether what it judges and what it names are different things: "soft lighting" is no matter of blur."""
        named = {t.meaning.scale for t in self.terms if t.meaning.sense == "neutral" and t.meaning.subject != "quality"}
        judged = {meaning.scale for meaning in self.meanings if meaning.sense != "neutral"} - {"any"}
        return bool(named and judged and named != judged)

    @property
    def is_lifelike(self) -> bool:
        """Whether it speaks of looking natural or not, which of light or sharpness no measurement tells."""
        return bool(_LIFELIKE.search(self.text))

    @property
    def claims_nothing(self) -> bool:
        """Whether it names nothing measurable and judges nothing."""
        return not self.terms and self.degree is None and self.level is None and self.comparison is None


def read(text: str, known: Collection[str] = ()) -> Reading:
    """Read a clause or an option; ``known`` are words to pass over, such as the names of regions."""
    text = text.replace("’", "'")
    terms = terms_in(text)
    rest = text
    for term in terms:
        rest = rest[: term.start] + "\n" * (term.end - term.start) + rest[term.end :]
    comparison = _COMPARISON.search(rest)
    plain = _LACK.sub("\n", _COMPARISON.sub("\n", rest))
    degree, level = _DEGREE.search(plain), _LEVEL.search(plain)
    denied = _LEVEL.sub("\n", _DEGREE.sub("\n", plain))
    left = _EXCESS.sub("\n", _NEGATION.sub("\n", denied))
    passed = _FILLER | {word.lower() for word in known}
    return Reading(
        text=text,
        terms=tuple(terms),
        degree=DEGREE_WORDS[_key(degree[0])] if degree else None,
        level=LEVEL_WORDS[_key(level[0])] if level else None,
        comparison=COMPARISONS[_key(comparison[0])] if comparison else None,
        negated=len(_NEGATION.findall(denied)) % 2 == 1,
        lacking=bool(_LACK.search(rest)),
        sufficient=bool(_SUFFICIENT.search(plain)),
        insufficient=bool(_INSUFFICIENT.search(rest)),
        excess=bool(_EXCESS.search(rest)),
        stressed=bool(_STRESS.search(rest)),
        flat=bool(_FLAT.search(rest)),
        exact=bool(_EXACT.search(rest)),
        unread=tuple(word for word in re.findall(r"[^\W\d_][\w'-]*", left.lower()) if word not in passed),
    )


def _key(phrase: str) -> str:
    return " ".join(re.split(r"[\s-]+", phrase.lower()))
