"""Split a question into words, punctuation marks and distortion phrases."""

import re
from dataclasses import dataclass
from functools import cache

from agenticiqa.programs.offline.plan import words
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.vocabulary import Distortion

_TOKEN = re.compile(r"[^\W_][\w'-]*|[^\w\s]")
_ADJECTIVE = re.compile(r"(?:able|ible|ful|ous|less|ish)$")
# Adjectives that identify a region ("the dark coat") as often as they find fault with it ("the coat is dark").
_DESCRIPTIVE = re.compile(r"(?:dark|bright|dim|vivid|vibrant|colou?rful|colou?red|well.lit)(?:e?r|e?st)?", re.I)


@dataclass(frozen=True)
class Token:
    """A word, a punctuation mark, or a whole distortion phrase (then with its category)."""

    text: str
    start: int
    distortion: Distortion | None = None

    @property
    def lower(self) -> str:
        """The word in lower case, without 's."""
        return self.text.lower().removesuffix("'s").removesuffix("'")

    @property
    def is_possessive(self) -> bool:
        """Whether it ends in 's or s'."""
        return self.text.lower().endswith(("'s", "s'"))

    @property
    def is_name_like(self) -> bool:
        """Whether it is a word and not a function word."""
        plain = self.lower not in words.FUNCTION_WORDS and self.lower not in words.GRADING
        return self.text[0].isalpha() and not self.distortion and plain

    @property
    def is_descriptive(self) -> bool:
        """Whether it is a distortion word that may only describe: dark, bright, colorful."""
        return bool(self.distortion and _DESCRIPTIVE.fullmatch(self.text))

    @property
    def is_degree(self) -> bool:
        """Whether it is an adverb of degree, not part of a region's name: "the most severely affected part"."""
        return self.lower in words.DEGREES or (self.lower.endswith("ly") and self.lower not in words.LY_NOUNS)

    @property
    def is_noun(self) -> bool:
        """Whether neither a word list nor its ending marks it as something else."""
        listed = any(self.lower in some for some in (words.MODIFIERS, words.PREDICATES, words.DEGREES))
        superlative = self.lower.endswith("est") and len(self.lower) > 5 and self.lower not in words.EST_NOUNS
        return not (
            self.distortion
            or listed
            or superlative
            or self._is_participle
            or _is_judged(self.lower)
            or self.text.isdigit()
        )

    @property
    def distinguishes(self) -> bool:
        """Whether it makes "part" or "object" a region: a place, a color, a thing; but not "the affected part"."""
        return self.is_noun or self.is_descriptive or self.lower in words.MODIFIERS

    @property
    def ends_name(self) -> bool:
        """Whether it is a predicate of the noun before it: "is the dog happy", "is the text readable"."""
        adjective = _ADJECTIVE.search(self.lower) and self.lower not in words.ABLE_NOUNS
        return bool(adjective) or self.lower in words.PREDICATES or self.is_degree or self._is_participle

    @property
    def _is_participle(self) -> bool:
        word = self.lower
        return (word.endswith("ing") and word not in words.ING_NOUNS) or (
            word.endswith("ed") and word not in words.ED_NOUNS
        )


@cache
def _is_judged(word: str) -> bool:
    """Whether a word finds a fault or a virtue: "blown", "gritty"."""
    return any(term.meaning.sense in ("fault", "virtue") for term in terms_in(word))


def tokenize(text: str) -> list[Token]:
    """The words, marks and distortion phrases of a text, in order."""
    text = text.replace("’", "'")
    tokens: list[Token] = []
    position = 0
    for phrase, category in distortions_in(text):
        start = next(re.compile(rf"(?<![\w-]){re.escape(phrase)}(?!\w)").finditer(text, position)).start()
        tokens += _plain_tokens(text, position, start)
        tokens.append(Token(phrase, start, category))
        position = start + len(phrase)
    return tokens + _plain_tokens(text, position, len(text))


def _plain_tokens(text: str, start: int, end: int) -> list[Token]:
    return [Token(match[0], match.start()) for match in _TOKEN.finditer(text, start, end)]
