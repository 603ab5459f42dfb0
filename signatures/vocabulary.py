"""The closed vocabularies of the method, and the everyday words that mean the same.

The documents use three lists of distortion words and two of severity words. Each is folded here, on the way in, into
one: eight distortion categories (seven that detection may report, and "Spatial distortions", which only tools and
questions name) and five severities.
"""

import re
from typing import Literal, get_args

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

# Words and phrases of each category, in lower case; "*" stands for any ending, a space for blanks or hyphens.
DISTORTION_WORDS: dict[Distortion, tuple[str, ...]] = {
    "Blurs": (
        "blur*",
        "defocus*",
        "out of focus",
        "out-of-focus",
        "in focus",
        "focus",
        "focused",
        "focussed",
        "focusing",
        "unfocused",
        "well focused",
        "motion blur*",
        "camera shake",
        "shaky",
        "smear*",
        "bokeh",
        "lens blur",
        "gaussian blur",
        "fuzzy",
        "soft edges",
    ),
    "Color distortions": (
        "color*",
        "colour*",
        "saturat*",
        "oversaturat*",
        "over saturat*",
        "undersaturat*",
        "under saturat*",
        "desaturat*",
        "hue",
        "hues",
        "tint*",
        "skin tone*",
        "reddish",
        "greenish",
        "bluish",
        "yellowish",
        "too red",
        "too green",
        "too blue",
        "too yellow",
        "too orange",
        "too warm",
        "too cool",
        "cast",
        "white balance",
        "vivid*",
        "vibran*",
        "faded",
        "discolor*",
        "chroma*",
    ),
    "Compression": (
        "compress*",
        "over compress*",
        "jpeg",
        "jpg",
        "jpeg2000",
        "jp2k",
        "block",
        "blocks",
        "blocky",
        "blockiness",
        "blocking",
        "blocking artifact*",
        "block artifact*",
        "posteri*",
        "ringing",
        "banding",
        "mosquito noise",
        "artifact*",
        "artefact*",
    ),
    "Noise": (
        "nois*",
        "grain*",
        "speckle*",
        "salt and pepper",
        "impulse noise",
        "white noise",
        "gaussian noise",
        "iso noise",
        "color noise",
        "colour noise",
        "chroma noise",
        "luminance noise",
    ),
    "Brightness change": (
        "bright*",
        "dark*",
        "dim",
        "dimly",
        "expos*",
        "overexpos*",
        "over expos*",
        "underexpos*",
        "under expos*",
        "lighting",
        "lit",
        "well lit",
        "well exposed",
        "low light",
        "enough light",
        "too much light",
        "highlights",
        "illuminat*",
        "glare",
        "backlit",
        "backlight*",
        "blown out",
        "clipped",
        "clipping",
        "shadows",
        "luminance",
        "mean shift",
    ),
    "Sharpness": (
        "sharp*",
        "oversharp*",
        "over sharp*",
        "clarity",
        "clear",
        "clearer",
        "clearest",
        "unclear",
        "crisp*",
        "detail*",
        "halo*",
        "unsharp*",
    ),
    "Contrast": (
        "contrast*",
        "low contrast",
        "high contrast",
        "washed out",
        "hazy",
        "haze",
        "foggy",
        "flat tones",
        "dynamic range",
    ),
    "Spatial distortions": (
        "pixelat*",
        "pixellat*",
        "jitter*",
        "quantiz*",
        "quantis*",
        "aliasing",
        "moire",
        "moiré",
        "jagged*",
        "color block*",
        "colour block*",
    ),
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


def _pattern(phrase: str) -> str:
    words = re.split(r"[ -]+", phrase)
    return r"[\s-]+".join(re.escape(word).replace(r"\*", r"\w*") for word in words)


_DISTORTION_PATTERNS = {
    category: re.compile(
        r"(?<![\w-])(?:" + "|".join(_pattern(p) for p in (category.lower(), *phrases)) + r")(?!\w)", re.I
    )
    for category, phrases in DISTORTION_WORDS.items()
}
_SEVERITY_OF = {word: severity for severity, words in SEVERITY_WORDS.items() for word in words}


def distortions_in(text: str) -> list[tuple[str, Distortion]]:
    """Every distortion word in ``text`` with its category, in order of appearance; where two overlap, the longer.

    >>> distortions_in("Motion blur or a grainy sky?")
    [('Motion blur', 'Blurs'), ('grainy', 'Noise')]
    """
    found = [
        (match.start(), match.end(), category)
        for category, pattern in _DISTORTION_PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    kept: list[tuple[int, int, Distortion]] = []
    for start, end, category in sorted(found, key=lambda span: (span[0] - span[1], span[0])):
        if all(end <= other_start or start >= other_end for other_start, other_end, _ in kept):
            kept.append((start, end, category))
    return [(text[start:end], category) for start, end, category in sorted(kept)]


def fold_distortion(word: str) -> Distortion | None:
    """The category that a word means, or ``None``: ``"overexposed"`` is ``"Brightness change"``."""
    named = distortions_in(word)
    return named[0][1] if named else None


def fold_severity(word: str) -> Severity | None:
    """The severity that a word means, or ``None``: ``"heavy"`` is ``"severe"``."""
    return _SEVERITY_OF.get(" ".join(word.lower().split()))
