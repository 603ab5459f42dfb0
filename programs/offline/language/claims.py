"""Parse a clause of a question, or an option, as a claim about the image: of what, how much, and negated or not."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from agenticiqa.programs.offline.language import word_lists
from agenticiqa.programs.offline.language.word_lists import Comparison
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, Term, any_of, terms_in

# Too much of these is a fault, and too little as well.
TWO_SIDED = frozenset({"Brightness change", "Color distortions", "Contrast"})

_DEGREE = any_of(word_lists.DEGREE_WORDS)
_LEVEL = any_of(word_lists.LEVEL_WORDS)
_COMPARISON = any_of(word_lists.COMPARISONS)
_RATING = any_of(word_lists.RATING_WORDS.split(", "))
_NEGATION = any_of(word_lists.NEGATIONS)
_DEFICIT = any_of(["lack*", "lack of", "lacking in", "loss of", "lose*", "losing", "lost", "missing", "not enough"])
_SUFFICIENT = any_of(["enough", "sufficient", "sufficiently", "adequate", "adequately"])
_INSUFFICIENT = any_of(["insufficient", "insufficiently", "inadequate", "not enough"])
_EXCESS = any_of(word_lists.EXCESSES)
_NATURALNESS = any_of(["natural", "unnatural", "realistic", "unrealistic"])
_EMPHASIS = any_of(["very", "extremely", "highly", "perfectly", "completely", "totally", "really", "far", "way"])
_ABSOLUTE = any_of(["no", "without", "free of", "free from", "any", "some", "at all"])
_EXACT = any_of(["barely", "slight*", "mild*", "moderate*", "medium", "minor", "light*"])


@dataclass(frozen=True)
class Clause:
    """A parsed clause. ``unknown_words`` are words that no list has: with any, the clause is not fully understood.

    ``degree`` is a severity 0..4 and ``level`` a quality 1..5; "high" and "low" are both. ``comparison`` is with
    something else ("worse"). Found anywhere in the clause are: ``negated`` ("not", "without"; two cancel out),
    ``deficit`` ("lack of"), ``sufficient``, ``insufficient``, ``excess`` ("too"), ``emphasized`` ("very"), ``absolute``
    ("no noise", "any noise": whether there is any at all, unlike "not noisy" and "noise"), and ``exact``: the degree is
    meant exactly ("slight"), not as a minimum ("severe").
    """

    text: str
    terms: tuple[Term, ...]
    degree: float | None
    level: float | None
    comparison: Comparison | None
    negated: bool
    deficit: bool
    sufficient: bool
    insufficient: bool
    excess: bool
    emphasized: bool
    absolute: bool
    exact: bool
    unknown_words: tuple[str, ...]

    @property
    def meanings(self) -> list[Meaning]:
        """The meanings of its terms, each once: faults and virtues if there are any, otherwise neutral ones."""
        judged = [term.meaning for term in self.terms if term.meaning.sense != "neutral"]
        special = [meaning for meaning in judged if meaning.subject != "any"]
        plain = [term.meaning for term in self.terms if term.meaning.sense == "neutral"]
        named = [meaning for meaning in plain if meaning.subject != "quality"]
        if judged and not special:  # "anything wrong with the exposure"
            special = [replace(judged[0], subject=meaning.subject) for meaning in named]
        return list(dict.fromkeys(special or judged or named or plain))

    @property
    def names_unmeasured(self) -> bool:
        """Whether it names a distortion that no tool measures."""
        return any(meaning.subject == "unmeasured" for meaning in self.meanings)

    @property
    def grades_fault(self) -> bool:
        """Whether its degree is that of a fault: not in "too much", whose words say that it is one."""
        return not self.excess and any(term.meaning.sense == "fault" for term in self.terms)

    @property
    def rates_quality(self) -> bool:
        """Whether its level rates the quality of the whole image."""
        named = any(term.meaning.subject == "quality" for term in self.terms)
        return self.level is not None and (named or bool(_RATING.search(self.text)))

    @property
    def mixes_subjects(self) -> bool:
        """Whether it names one thing and judges another: "soft lighting" is not about blur."""
        named = {t.meaning.scale for t in self.terms if t.meaning.sense == "neutral" and t.meaning.subject != "quality"}
        judged = {meaning.scale for meaning in self.meanings if meaning.sense != "neutral"} - {"any"}
        return bool(named and judged and named != judged)

    @property
    def rates_naturalness(self) -> bool:
        """Whether it asks if something looks natural, which no measurement tells for light or sharpness."""
        return bool(_NATURALNESS.search(self.text))

    @property
    def is_empty(self) -> bool:
        """Whether it names nothing measurable and makes no judgment."""
        return not self.terms and self.degree is None and self.level is None and self.comparison is None


def parse_clause(text: str, known: Collection[str] = ()) -> Clause:
    """Parse a clause or an option; ``known`` are words to ignore, such as the names of regions."""
    text = text.replace("’", "'")
    terms = terms_in(text)
    rest = text
    for term in terms:
        rest = rest[: term.start] + "\n" * (term.end - term.start) + rest[term.end :]
    comparison = _COMPARISON.search(rest)
    plain = _DEFICIT.sub("\n", _COMPARISON.sub("\n", rest))
    degree, level = _DEGREE.search(plain), _LEVEL.search(plain)
    denied = _LEVEL.sub("\n", _DEGREE.sub("\n", plain))
    remaining = _EXCESS.sub("\n", _NEGATION.sub("\n", denied))
    ignored = word_lists.FILLERS | {word.lower() for word in known}
    return Clause(
        text=text,
        terms=tuple(terms),
        degree=word_lists.DEGREE_WORDS[_key(degree[0])] if degree else None,
        level=word_lists.LEVEL_WORDS[_key(level[0])] if level else None,
        comparison=word_lists.COMPARISONS[_key(comparison[0])] if comparison else None,
        negated=len(_NEGATION.findall(denied)) % 2 == 1,
        deficit=bool(_DEFICIT.search(rest)),
        sufficient=bool(_SUFFICIENT.search(plain)),
        insufficient=bool(_INSUFFICIENT.search(rest)),
        excess=bool(_EXCESS.search(rest)),
        emphasized=bool(_EMPHASIS.search(rest)),
        absolute=bool(_ABSOLUTE.search(rest)),
        exact=bool(_EXACT.search(rest)),
        unknown_words=tuple(word for word in re.findall(r"[^\W\d_][\w'-]*", remaining.lower()) if word not in ignored),
    )


def claimed_meaning(clause: Clause, asked: Meaning | None = None) -> Meaning | None:
    """The fault or virtue that a clause claims; ``None`` if it claims none, or several.

    A neutral term becomes a fault or virtue by its attribute: "lack of contrast", "good lighting", "brightness too
    high". A clause without a term of its own ("too low") is about ``asked``.
    """
    meanings = clause.meanings or ([asked] if asked else [])
    if len({(meaning.scale, meaning.sense) for meaning in meanings}) != 1:
        return None
    subjects, kinds = {meaning.subject for meaning in meanings}, {meaning.kind for meaning in meanings} - {""}
    meaning = Meaning(
        meanings[0].subject if len(subjects) == 1 else meanings[0].scale,
        meanings[0].sense,
        kinds.pop() if len(kinds) == 1 else "",
    )
    subject, upper, lower = meaning.subject, UPPER.get(meaning.subject, ""), LOWER.get(meaning.subject, "")
    if meaning.sense == "more":
        if clause.excess:
            return replace(meaning, sense="fault")
        return Meaning(subject, "virtue", lower) if clause.level else meaning
    if meaning.sense != "neutral" or subject == "quality":
        return meaning
    if clause.rates_naturalness and subject != "Color distortions":  # natural light is about its source
        return None
    little = clause.level == 2 and clause.degree is not None and clause.degree <= 1  # "low", "weak"
    much = clause.level == 4 and clause.degree is not None and clause.degree >= 3  # "high", "strong"
    if clause.deficit or clause.insufficient or little or (clause.excess and (clause.degree or 9) <= 1):
        return Meaning(subject, "fault", lower)
    if clause.excess:
        return Meaning(subject, "fault", upper)
    if clause.sufficient:
        return Meaning(subject, "virtue", lower)
    if much and subject in TWO_SIDED:
        return Meaning(subject, "more", upper)
    if clause.level is not None:
        return Meaning(subject, "fault" if clause.level < 3 else "virtue")
    return None


def _key(phrase: str) -> str:
    return " ".join(re.split(r"[\s-]+", phrase.lower()))
