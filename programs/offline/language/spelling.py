"""Misspelled words of a question, corrected to the words that the lexicon and the word lists have."""

import re
from functools import cache

from agenticiqa.programs.offline.language import word_lists
from agenticiqa.signatures.lexicon import terms_in

SHORTEST = 4  # letters of a word that is corrected
LONG = 8  # letters of a word from which on two letters may be wrong
# The words that a misspelled one may be meant for: those for distortions, and those that a question is made of.
TARGETS = word_lists.word_set(
    """
    blurry blurred blurriness blurring unfocused defocused focused focus motion sharp sharpness sharper sharpened
    sharpening oversharpened unsharp crisp clear clarity unclear detail details detailed fuzzy smeared shaky noise noisy
    noisier grain grainy grainier graininess speckled speckles compression compressed compress artifact artifacts
    artefacts artefact blocky blockiness blocking banding ringing posterized pixelated exposure exposed overexposed
    overexposure underexposed underexposure bright brighter brightness darkness darker lighting luminance highlights
    shadows contrast contrasty saturated saturation oversaturated undersaturated desaturated desaturation vibrant vivid
    colorful color colors colour colours reddish greenish bluish yellowish tinted washed faded distortion distortions
    distorted degraded degradation defect defects quality reference original pristine severe severity moderate
    main which where right upper lower slightly extremely noticeable visible background subject picture photo image
    halos vignetting aliasing what cast bottom center middle corner
    """
)
# Correct words that are as near to one of those.
_ENGLISH = word_lists.word_set(
    """
    share shape shared shapes shard sharks sharpen caption contact context contest contract contrary content contents
    expose exposes export express expert expects detained retail detect detects effect deject perfect greek black blocks
    clock locked lockout docking binding bonding bending landing binary grant grand graph gain drain train brain grin
    groin nose noses clean cleat cleared cleaver quantity equality references referee referent refers originals patient
    ringing wringing bringing singing printing holes hallo halls halves clarify charity bundling balding crimp criss
    boundary brighten lightness lightning wasted washes posted posters fired fated fades formal severely seven several
    serve clears clarity qualify visibly vision invisible immediate modernist moderated defeat defeats direction
    detection detections detected deflection destruction description situation station chrome colon colony colonies
    cooler collar collars blurb blurbs focal fuss farmed phone photos grainer grains grade crisps camera
    whirl witch wherever wright light lighter
    mean mail maid maine many mine
    cant contour contours crispy
    case cash cost cart last cats caste casts coast costs hat wheat chat wait want wham whet wat that
    security proto detached limiting shortened originate blinding aligning comprised ranging grail derail severing
    boarding situated explored branding wished shake bounding fuzz
    smeared sharply discolored saturate fussy noises poise imagine images imaged imager detailing
    """
)
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")


def corrected(text: str, kept: frozenset[str] = frozenset()) -> str:
    """The text with misspelled words for distortions, degrees and qualities replaced.

    A word is replaced that no list has and from which exactly one known word with the same first letter is one edit
    away (an added, missing, changed or swapped letter), from eight letters on two. Words in capitals and those in
    ``kept`` stay.

    >>> corrected("Is it bluury, or is the contarst low?")
    'Is it blurry, or is the contrast low?'
    """
    return _WORD.sub(lambda match: _corrected(match[0]) if match[0].lower() not in kept else match[0], text)


@cache
def _corrected(word: str) -> str:
    lower = word.lower()
    if (
        len(word) < SHORTEST
        or lower in _known()
        or word.isupper()
        or "'" in word
        or _inflected(lower)
        or terms_in(lower)
    ):
        return word
    for most in (1, 2)[: 2 if len(word) >= LONG else 1]:
        near = [known for known in TARGETS if known[0] == lower[0] and distance(lower, known, most) <= most]
        if near:
            return min(near, key=lambda known: (abs(len(known) - len(lower)), known))
    return word


def distance(one: str, other: str, most: int) -> int:
    """Edits between two words (Damerau-Levenshtein with adjacent swaps); more than ``most`` are not counted exactly."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            edits = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
        if min(row) > most:
            return most + 1
    return row[-1]


@cache
def _known() -> frozenset[str]:
    lists = [value for value in vars(word_lists).values() if isinstance(value, frozenset)]
    phrases = [*word_lists.DEGREE_WORDS, *word_lists.LEVEL_WORDS, *word_lists.COMPARISONS]
    single = {word for phrase in phrases for word in phrase.split()}
    return _ENGLISH.union(*lists, single, TARGETS)


def _inflected(word: str) -> bool:
    """Whether a known word is in it, with an ending."""
    return any(word.removesuffix(ending) in _known() for ending in ("s", "es", "ed", "d", "ing", "ly", "er", "est"))
