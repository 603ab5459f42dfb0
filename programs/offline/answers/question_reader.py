"""Interpret questions and options with a small network, for wordings that the rules do not cover.

The network is a sentence encoder (all-MiniLM-L6-v2: W. Wang et al., "MiniLM", NeurIPS 2020), fine-tuned on varied
questions. ``eval/research/train_question_reader.py`` trains it and prints its accuracy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.numerics.networks import run_network, value_names
from agenticiqa.programs.tools.numerics.weights import read_checked
from agenticiqa.signatures.categories import CATEGORIES
from agenticiqa.signatures.lexicon import Meaning, terms_in
from agenticiqa.signatures.vocabulary import closest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NETWORK = Path(__file__).with_name("question_reader.onnx")
SHA256 = "7b8ca403455f9770d704889aab04649e7257ac0e7d06dd0ed5f25c20e97191ed"
VOCABULARY = Path(__file__).with_name("question_reader.json")
VOCABULARY_SHA256 = "0c73789c42b1cefe0fd96273d412d47678880b7d1c164d5957781f6c44b25f23"
OUTPUT = "read"
LONGEST_TEXT, LONGEST = 2_000, 96  # characters of a question that are read, and tokens of these
KEPT = 256  # cached texts, because all images of a folder often have the same question

_CUT_OFF = re.compile(r"(?<!\s)\s*+[,;:-]\s*+$")  # the end of a question without its options

INTENTS = (
    "yes",
    "no",
    "degree",
    "which",
    "where",
    "half",
    "half-clean",
    "part-yes",
    "part-no",
    "part-degree",
    "part-which",
    "compare-yes",
    "compare-no",
    "compare-image",
    "compare-reference",
    "compare-category",
    "reference-yes",
    "reference-no",
    "metric",
    "rating-high",
    "rating-low",
    "unanswerable",
)
"""The intents of questions. "yes" and "no" are the true answers if the distortion is present: "no" for "Is it sharp?".

"part" is for a part of the image, "reference" for the reference. "compare" is with the reference: whether the image has
more of it, which of the two has more ("image", "reference"), or what differs. "half" requests the half that has more of
it, "half-clean" the half that has less. "rating" requests a number on a scale with its best end at "high" or "low".
"""
EXTENT = {
    **dict.fromkeys(("yes", "no", "degree", "which"), "whole"),
    **dict.fromkeys(("part-yes", "part-no", "part-degree", "part-which"), "part"),
    **dict.fromkeys(("half", "half-clean"), "half"),
    **dict.fromkeys(("compare-yes", "compare-no"), "compare"),
}
"""The extent of an intent: the whole image, a part, its halves, or the image and the reference."""
FAULTS: dict[str, Meaning] = {
    name: Meaning(words.subject or row.name, "fault", words.kind)
    for row in CATEGORIES
    for words in row.words
    for name in words.read_as
}
"""The distortions that the network recognizes, by their names among its outputs."""


def _main_kinds() -> dict[str, str]:
    main: dict[str, str] = {}
    for row in CATEGORIES:
        names = {name: words.kind for words in row.words for name in words.read_as}
        whole = [name for name, kind in names.items() if not kind]
        if whole:
            main |= dict.fromkeys(names, whole[0])
    return main


MAIN_KIND = _main_kinds()
"""The outputs for kinds of a category that has an output itself, with this output."""
NONE, OTHER, AMOUNT = "none", "other", "amount"
MEANINGS = (*FAULTS, NONE, OTHER, AMOUNT)
"""The subjects of a text: a distortion, none or any of them, something else, or only an amount."""
READINGS: Mapping[str, tuple[str, ...]] = {"intent": INTENTS, "meaning": MEANINGS, "level": ("0 to 5",)}
"""What the network reads in a text, with the names of the values of each."""
VALUES = tuple(f"{reading}: {name}" for reading, names in READINGS.items() for name in names)
"""The names of the network's values. The network has the same ones, in an order of its own."""


@dataclass(frozen=True)
class Read:
    """One of ``INTENTS`` or ``MEANINGS`` with its probability; ``category`` is the probability of its group.

    A group has the intents with the same ``EXTENT``, or the meanings with the same entry in ``MAIN_KIND``.
    """

    name: str
    probability: float
    category: float


@dataclass(frozen=True)
class Reading:
    """The predicted intent and meaning of a text; ``level`` is the amount that an option states, 0 (none) to 5."""

    intent: Read
    meaning: Read
    level: float


def fault_named(name: str) -> Meaning | None:
    """Return the distortion that one of ``MEANINGS`` names; ``None`` for "none", "other" and "amount"."""
    return FAULTS.get(name)


def main_kind(name: str) -> str:
    """Return the distortion that represents all kinds of its category; other names are returned unchanged."""
    return MAIN_KIND.get(name, name)


def in_context(question: str, option: str) -> str:
    """Return an option after its question, so that an option such as "over" has a meaning."""
    return f"{question} {option}".strip()


def listing(question: str, options: Mapping[str, str]) -> str:
    """Return a question with all its options, because they may complete it: "It is ... A. sharp B. blurred"."""
    return " ".join([question, *(f"{letter}. {text}" for letter, text in options.items())]).strip()


@lru_cache(KEPT)
def read_text(text: str) -> Reading:
    """Interpret a question without its options, or one option.

    Raises ToolError for damaged weights, and for those of another table of words.
    """
    excerpt = _CUT_OFF.sub("?", text[:LONGEST_TEXT])
    numbers = _vocabulary().encode(excerpt).ids[:LONGEST]
    output = run_network(NETWORK, SHA256, OUTPUT, np.array([numbers], dtype=np.int64))[0]
    values = {reading: {name: output[place] for name, place in places.items()} for reading, places in _places().items()}
    (level,) = values["level"].values()
    return Reading(_likeliest(values["intent"], EXTENT), _likeliest(values["meaning"], MAIN_KIND), float(level))


@cache
def _places() -> dict[str, dict[str, int]]:
    """Return the places of the network's values by what is read and by name, in the network's order."""
    places: dict[str, dict[str, int]] = {reading: {} for reading in READINGS}
    for place, value in enumerate(value_names(NETWORK, SHA256, OUTPUT, VALUES)):
        reading, _, name = value.partition(": ")
        places[reading][name] = place
    return places


def is_word(word: str) -> bool:
    """Return whether the network's vocabulary has a lower-case word as one token, as for common English words."""
    return _vocabulary().token_to_id(word) is not None


def _likeliest(values: Mapping[str, np.float32], kinds: Mapping[str, str]) -> Read:
    scores = np.array([*values.values()])
    odds = np.exp(scores.astype(float) - scores.max())
    shares = dict(zip(values, map(float, odds / odds.sum()), strict=True))
    best = max(shares, key=shares.__getitem__)
    like = sum(share for name, share in shares.items() if kinds.get(name, name) == kinds.get(best, best))
    return Read(best, shares[best], like)


def _vocabulary() -> "Tokenizer":
    return _tokenizer.once("", _loaded)


_tokenizer = Memo()


def _loaded() -> "Tokenizer":
    from tokenizers import Tokenizer  # a late import, so that the program starts without it

    return Tokenizer.from_str(read_checked(VOCABULARY, VOCABULARY_SHA256).decode())


# --- misspelled words, corrected to those that are frequent in questions about image quality

SHORTEST = 4  # letters of a word that is corrected
SIMILAR = 0.8  # minimum of difflib's ratio
_MEANT = """
    blurry blurred blurriness blurring unfocused defocused focused focus motion sharp sharpness sharper sharpened
    sharpening oversharpened unsharp crisp clear clarity unclear detail details detailed fuzzy smeared shaky noise
    noisy noisier grain grainy grainier graininess speckled speckles compression compressed compress artifact
    artifacts artefacts artefact blocky blockiness blocking banding ringing posterized pixelated exposure exposed
    overexposed overexposure underexposed underexposure bright brighter brightness darkness darker lighting
    luminance highlights shadows contrast contrasty saturated saturation oversaturated undersaturated desaturated
    desaturation vibrant vivid colorful color colors colour colours reddish greenish bluish yellowish tinted washed
    faded distortion distortions distorted degraded degradation defect defects quality reference original pristine
    severe severity moderate main which where right upper lower slightly extremely noticeable visible background
    subject picture photo image halos vignetting aliasing what cast bottom center middle corner
    """
TARGETS = frozenset(_MEANT.split())
OTHERS = frozenset({"contour", "contours"})  # correct words that resemble one of those
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")


def corrected(text: str) -> str:
    """Replace misspelled words for distortions, degrees and qualities in a text.

    A word is replaced by the most similar known word with the same first letter (``vocabulary.closest``), if it is not
    a word itself: a token of the network, an inflected known word, or a word of the lexicon. Words in capitals are
    unchanged.

    >>> corrected("Is it bluury, or is the contarst low?")
    'Is it blurry, or is the contrast low?'
    """
    return _WORD.sub(lambda match: _corrected(match[0]), text)


@cache
def _corrected(word: str) -> str:
    lower = word.lower()
    is_correct = lower in OTHERS or is_word(lower) or _inflected(lower) or terms_in(lower)
    if len(word) < SHORTEST or word.isupper() or is_correct:
        return word
    return closest(lower, (known for known in TARGETS if known[0] == lower[0]), SIMILAR) or word


def _inflected(word: str) -> bool:
    """Return whether a word is a known word with an ending."""
    stems = {word.removesuffix(ending) for ending in ("s", "es", "ed", "d", "ing", "ly", "er", "est")} - {word}
    return any(stem in TARGETS or is_word(stem) for stem in stems)
