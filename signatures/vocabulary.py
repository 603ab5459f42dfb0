"""The closed vocabularies of the method: distortion categories, severities and quality levels.

The documents use three lists of distortion words and two of severity words. ``signatures.lexicon`` folds them into
these: eight distortion categories (seven that detection may report, and "Spatial distortions", which only tools and
questions name) and five severities.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Literal, get_args

DEFAULT_QUERY = "Rate the perceptual quality of this image."

DetectableDistortion = Literal[
    "Blurs", "Color distortions", "Compression", "Noise", "Brightness change", "Sharpness", "Contrast"
]
Distortion = Literal[
    "Blurs",
    "Color distortions",
    "Compression",
    "Noise",
    "Brightness change",
    "Sharpness",
    "Contrast",
    "Spatial distortions",
]
Severity = Literal["none", "slight", "moderate", "severe", "extreme"]
Level = Literal["Excellent", "Good", "Fair", "Poor", "Bad"]

DETECTABLE: tuple[DetectableDistortion, ...] = get_args(DetectableDistortion)
DISTORTIONS: tuple[Distortion, ...] = get_args(Distortion)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
LEVELS: dict[Level, int] = {"Excellent": 5, "Good": 4, "Fair": 3, "Poor": 2, "Bad": 1}

# The names of distortions are the field's; these are a photographer's.
EVERYDAY_NAMES: dict[Distortion, str] = {
    "Blurs": "blur",
    "Color distortions": "color distortion",
    "Compression": "compression artifacts",
    "Noise": "noise",
    "Brightness change": "exposure problems",
    "Sharpness": "sharpness problems",
    "Contrast": "contrast problems",
    "Spatial distortions": "spatial distortions",
}

SEVERITY_WORDS: dict[Severity, tuple[str, ...]] = {
    "none": ("none", "no", "absent", "invisible", "not visible", "barely visible", "negligible", "imperceptible"),
    "slight": ("slight", "slightly", "mild", "mildly", "minor", "light", "lightly", "weak", "little", "a little",
               "low"),
    "moderate": ("moderate", "moderately", "medium", "noticeable", "noticeably", "visible", "some", "somewhat"),
    "severe": ("severe", "severely", "heavy", "heavily", "strong", "strongly", "serious", "seriously", "significant",
               "high", "very", "bad", "badly"),
    "extreme": ("extreme", "extremely", "very severe", "very heavy", "very strong", "unusable", "completely"),
}  # fmt: skip


def everyday_name(distortion: str) -> str:
    """What a photographer calls a distortion; a name outside of the vocabulary in lower case."""
    return next((word for name, word in EVERYDAY_NAMES.items() if name == distortion), distortion.lower())


LONGEST_WORD = 100  # characters; what is longer is a sentence, and comparing takes long


def closest(word: str, vocabulary: Iterable[str], similar: float = 0.88) -> str | None:
    """The one word of a closed vocabulary that ``word`` is, in any case, or is a misspelling of; ``None`` without.

    ``similar`` is the least ratio of ``difflib.SequenceMatcher``.

    >>> closest("Explict", ["Explicit", "Inferred"])
    'Explicit'
    """
    given = word.strip().casefold()
    if len(given) > LONGEST_WORD:
        return None
    folded = {known: known.casefold() for known in vocabulary}
    equal = [known for known, text in folded.items() if text == given]  # nearly always: comparing takes a millisecond
    if equal:
        return equal[0] if len(equal) == 1 else None
    ratios = {known: SequenceMatcher(None, given, text).ratio() for known, text in folded.items()}
    best = max(ratios, key=lambda known: ratios[known], default=None)
    if best is None or ratios[best] < similar or list(ratios.values()).count(ratios[best]) > 1:
        return None
    return best
