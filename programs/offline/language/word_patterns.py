"""How a question is put, apart from what it is about: its words with the names of distortions and parts replaced."""

import re
import zlib
from collections.abc import Iterable, Mapping

from agenticiqa.programs.offline.language.spelling import corrected
from agenticiqa.programs.stages.instructions import without_instructions
from agenticiqa.signatures.lexicon import terms_in

BUCKETS = 2**15
LONGEST = 2_000  # characters that are read: nobody asks at greater length
_WORDS, _LETTERS = (1, 2, 3), (2, 3, 4, 5)  # lengths of the n-grams
_PLACE = re.compile(
    r"\b(?:left|right|top|bottom|upper|lower|middle|cent(?:er|re)|corners?|half|halves|sides?|sky|face|background"
    r"|foreground|subject|area|region|part)\b"
)
_REFERENCE = re.compile(r"\b(?:reference|original|pristine|undistorted|source)(?:'s)?\b")
_STOP = re.compile(r"[.!;:\n]+")
_VAGUE = ("any", "quality", "unmeasured")


def word_pattern(text: str) -> str:
    """A text in lower case with placeholders for distortions (by what is said of them), parts and numbers.

    >>> word_pattern("Isn't the left half blurry?")
    'xxbegin is not the xxplace xxplace xxfault xxask xxend'
    """
    pieces, position = list[str](), 0
    for term in terms_in(text):
        meaning = term.meaning
        pieces += [
            text[position : term.start],
            f" xx{meaning.subject if meaning.subject in _VAGUE else meaning.sense} ",
        ]
        position = term.end
    plain = "".join([*pieces, text[position:]]).lower()
    plain = _PLACE.sub(" xxplace ", _REFERENCE.sub(" xxref ", plain))
    plain = re.sub(r"\d+", " xxnum ", re.sub(r"n't\b", " not", plain))
    plain = _STOP.sub(" xxstop ", plain).replace(",", " xxcomma ").replace("?", " xxask ")
    return " ".join(["xxbegin", *re.sub(r"[^a-z']", " ", plain).split(), "xxend"])


def hashed_ngrams(question: str, asking: str) -> Mapping[int, float]:
    """The weight of each of ``BUCKETS``: n-grams of a question's words, of their letters, and of ``asking``, which is
    the part of it that asks.

    Each of the three kinds has the length 1, so that a long question counts as much as a short one.
    """
    text = corrected(without_instructions(question[:LONGEST].replace("’", "'")))
    words = word_pattern(text).split()
    kinds = (
        {"w " + ngram for ngram in _runs(words, _WORDS)},
        {"c" + "".join(run) for word in words for run in _letter_runs(f" {word} ")},
        {"a " + ngram for ngram in _runs(word_pattern(asking[:LONGEST]).split(), _WORDS)},
    )
    weights: dict[int, float] = {}
    for number, ngrams in enumerate(kinds):
        for ngram in sorted(ngrams):
            bucket = zlib.crc32(f"{number}{ngram}".encode()) % BUCKETS
            weights[bucket] = weights.get(bucket, 0.0) + len(ngrams) ** -0.5
    return weights


def _runs(words: list[str], lengths: Iterable[int]) -> Iterable[str]:
    return (" ".join(words[start : start + n]) for n in lengths for start in range(len(words) - n + 1))


def _letter_runs(word: str) -> Iterable[str]:
    return (word[start : start + n] for n in _LETTERS for start in range(len(word) - n + 1))
