"""The closed vocabularies of the method: distortion categories, severities and quality levels.

The specification uses three lists of distortion words and two of severity words. ``lexicon`` folds them into these:
eight categories (seven that detection may report, and "Spatial distortions", which only tools and questions name) and
five severities.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from agenticiqa.signatures.categories import CATEGORIES

DEFAULT_QUERY = "Rate the perceptual quality of this image."

if TYPE_CHECKING:
    DetectableDistortion: TypeAlias = str
    Distortion: TypeAlias = str
else:  # pydantic and the schemas for models allow only the names of the table
    DetectableDistortion = Literal[tuple(row.name for row in CATEGORIES if row.is_detectable)]
    Distortion = Literal[tuple(row.name for row in CATEGORIES)]
Severity = Literal["none", "slight", "moderate", "severe", "extreme"]
Level = Literal["Excellent", "Good", "Fair", "Poor", "Bad"]
Letter = Literal["A", "B", "C", "D", "E"]
ImageKind: TypeAlias = Literal["photo", "generated"]  # "generated" means AI-generated

DETECTABLE: tuple[DetectableDistortion, ...] = tuple(row.name for row in CATEGORIES if row.is_detectable)
# The order of the networks.
TRAINED: tuple[DetectableDistortion, ...] = tuple(row.name for row in CATEGORIES if row.head)
DISTORTIONS: tuple[Distortion, ...] = tuple(row.name for row in CATEGORIES)
CATEGORY_OF_KIND: dict[str, Distortion] = {kind: row.name for row in CATEGORIES for kind in row.kinds}
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
LEVELS: dict[Level, int] = {"Excellent": 5, "Good": 4, "Fair": 3, "Poor": 2, "Bad": 1}
LETTERS: dict[Level, Letter] = {"Excellent": "A", "Good": "B", "Fair": "C", "Poor": "D", "Bad": "E"}
CHOICES: dict[str, Level] = {letter: level for level, letter in LETTERS.items()}

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
    """Return a photographer's name for a distortion; unknown names are returned in lower case."""
    return next((row.everyday for row in CATEGORIES if row.name == distortion), distortion.lower())


LONGEST_WORD = 100  # characters; a longer text is a sentence, and comparing it takes long


def closest(word: str, vocabulary: Iterable[str], similar: float = 0.88) -> str | None:
    """Return the only word of a closed vocabulary that matches ``word``, ignoring case and misspellings, or ``None``.

    ``similar`` is the minimum ratio of ``difflib.SequenceMatcher``.

    >>> closest("Explict", ["Explicit", "Inferred"])
    'Explicit'
    """
    key = word.strip().casefold()
    if len(key) > LONGEST_WORD:
        return None
    folded = {known: known.casefold() for known in vocabulary}
    equal = [known for known, text in folded.items() if text == key]  # the usual case; comparing takes a millisecond
    if equal:
        return equal[0] if len(equal) == 1 else None
    ratios = {known: SequenceMatcher(None, key, text).ratio() for known, text in folded.items()}
    best = max(ratios, key=lambda known: ratios[known], default=None)
    if best is None or ratios[best] < similar or list(ratios.values()).count(ratios[best]) > 1:
        return None
    return best


def well_formed(text: str) -> str:
    """Replace each lone surrogate with a question mark, because files and prompts cannot contain them."""
    return text.encode("utf-8", "replace").decode("utf-8")
