"""Mark an answer: read from it what the question asks for, and compare that with the answers that are true.

An answer that does not contain what was asked for (a letter where none was offered, no side where a side was asked for)
is wrong; one that says that it cannot tell is undetermined, and right where nothing can be told.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from agenticiqa.signatures.categories import BLURS, BRIGHTNESS, COLOR, COMPRESSION, CONTRAST, NOISE, SHARPNESS

Form = Literal["yes_no", "letter", "severity", "category", "place", "image", "number", "undetermined"]
Mark = Literal["right", "wrong", "undetermined"]

UNDETERMINED = "undetermined"
OTHER = "other"  # an answer that does not contain what was asked for
REFUSED = "Unable to determine: "  # what stands before the message of an error

_UNDETERMINED = re.compile(
    r"\bundetermined\b|\b(?:unable|impossible|not possible) to (?:\w+ )?(?:determine|tell|say|judge|answer)"
    r"|\b(?:can ?not|can't|could not) (?:be )?(?:\w+ )?(?:determined?|tell|told|say|said|judged?|answer(?:ed)?|know)\b"
    r"|\b(?:not|none) (?:was |is )?(?:visible|located|found|shown) in (?:the|this) (?:image|photo|picture)\b",
    re.I,
)
_SEVERITIES: Mapping[str, str] = {
    "none": r"no|none|not|without|free of|absent|invisible|imperceptible|undistorted",
    "slight": r"slight\w*|mild\w*|minor|faint\w*|a little|low|weak\w*|barely|a bit|subtle",
    "moderate": r"moderate\w*|medium|noticeabl\w+|visibl[ey]|some\w*|fair\w*|middling",
    "severe": r"severe\w*|strong\w*|heav\w+|high\w*|very|serious\w*|marked\w*|bad\w*|a lot",
    "extreme": r"extreme\w*|massive\w*|terribl\w+|very severe|enormous\w*",
}
_CATEGORIES: Mapping[str, str] = {
    BLURS: r"blur\w*|out[- ]of[- ]focus|defocus\w*|unsharp|soft\w*|smear\w*",
    NOISE: r"nois\w+|grain\w*|speckle\w*|salt[- ]and[- ]pepper",
    COMPRESSION: r"compress\w+|jpe?g|webp|block\w*|artifact\w*|artefact\w*|banding|coding|posteri[sz]\w+",
    BRIGHTNESS: r"bright\w*|dark\w*|under-?expos\w+|over-?expos\w+|exposure|dim|clipped highlights",
    COLOR: r"colou?r\w*|satur\w+|desatur\w+|over-?satur\w+|faded|cast|tint\w*|hue",
    CONTRAST: r"(?:low |high |hard |poor |excessive )?contrast\w*|flat|hazy",
    SHARPNESS: r"over-?sharp\w+|sharpness|sharpening|sharpened|halo\w*|ringing",
}
_PLACE = re.compile(
    r"\b(?:(?P<down>top|upper|bottom|lower|middle|cent(?:er|re|ral)\w*)(?:[- ]+(?P<across>left|right))?"
    r"|(?P<side>left|right)(?:[- ]+(?P<corner>top|upper|bottom|lower)\b)?"
    r"|(?P<all>everywhere|whole|entire|all over|throughout))",
    re.I,
)
_SAME = {"upper": "top", "lower": "bottom", "middle": "center"}
_IMAGE = re.compile(
    r"\b(?P<reference>reference|original|pristine|second)\b|\b(?P<image>distorted|degraded|test|first|image|photo|picture)\b",
    re.I,
)
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:\.\d+)?")


def mark(answer: str, form: Form, accepted: Sequence[str]) -> Mark:
    """Whether an answer is right, wrong or undetermined.

    ``accepted`` are the true answers as ``read`` gives them; for numbers the lowest and the highest that are true, with
    the unit as an optional third.
    """
    found = read(answer, form)
    if found == UNDETERMINED:
        return "right" if UNDETERMINED in accepted else "undetermined"
    if form != "number" or UNDETERMINED in accepted:
        return "right" if found in accepted else "wrong"
    if found == OTHER or (len(accepted) > 2 and not re.search(rf"\d\s*{re.escape(accepted[2])}\b", answer, re.I)):
        return "wrong"
    return "right" if float(accepted[0]) <= float(found) <= float(accepted[1]) else "wrong"


def read(answer: str, form: Form) -> str:
    """What an answer says, in the terms of a form; ``OTHER`` if it does not say that."""
    if _UNDETERMINED.search(answer):
        return UNDETERMINED
    if form == "yes_no":
        found = re.match(r"\W*(yes|no)\b", answer, re.I)
        return found[1].lower() if found else OTHER
    if form == "letter":
        found = re.match(r"\W*(?i:(?:option|answer)\W+)?([A-Z])(?=[).:\]*]|\s*$)", answer)
        return found[1] if found else OTHER
    if form == "severity":
        return _first(answer, _SEVERITIES)
    if form == "category":
        return _first(answer, _CATEGORIES)
    if form == "place":
        return _place(answer)
    if form == "image":
        found = _IMAGE.search(answer)
        return (found.lastgroup or OTHER) if found else OTHER
    if form == "number":
        found = _NUMBER.search(answer)
        return found[0].replace("−", "-") if found else OTHER
    return OTHER


def _first(answer: str, patterns: Mapping[str, str]) -> str:
    """The name whose words come first in an answer; of those that begin at one place the longest."""
    found = [
        (match.start(), -len(match[0]), name)
        for name, words in patterns.items()
        if (match := re.search(rf"\b(?:{words})(?!\w)", answer, re.I))
    ]
    return min(found)[2] if found else OTHER


def _place(answer: str) -> str:
    found = _PLACE.search(answer)
    if not found:
        return OTHER
    if found["all"]:
        return "everywhere"
    down, across = (found["down"] or found["corner"] or "").lower(), (found["across"] or found["side"] or "").lower()
    down = "center" if down.startswith("cent") else _SAME.get(down, down)
    return f"{down} {across}".strip()
