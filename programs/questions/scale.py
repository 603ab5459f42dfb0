"""Parse the rating scale that a question states."""

import re
from dataclasses import dataclass
from typing import Literal

from agenticiqa.programs.questions.instructions import readable

RATES = re.compile(
    r"\b(?:rat(?:e|ing)|scor(?:e|ing)|grade|assess|evaluate|points|marks?|stars|number|percentage)\b|\bscale\b",
    re.I,
)
_SPAN = re.compile(
    r"(?<![\w.])(\d++)\s*+(?:\([^)]{0,80}\)\s*+|=[^,;.]{0,80}?|,[^,;.\d]{0,80},\s*+(?:up )?)?"
    r"(?:to|and|-|–|through|\.\.)\s*+(\d++)(?![\w]|\.\d)",
    re.I,
)
_BRACKETS = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*\]")
_OUT_OF = re.compile(r"\b(?:out\s+of|outt?a|of)\s+(?:a\s+)?(?:possible\s+)?(\d+)\b|\b(?:x|_+)?\s*/\s*(\d+)\b", re.I)
_POINTS = re.compile(r"\b(\d+)[- ](?:point|star|level)s?\b", re.I)
_PERCENT = re.compile(r"(?:\bper\s?cent(?:age)?\b|%)(?! of)", re.I)
_NUMBERS = {"zero": 0, "one": 1, "five": 5, "six": 6, "seven": 7, "ten": 10, "twenty": 20, "hundred": 100}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b", re.I)
_STARS = re.compile(r"\bstars?\b", re.I)
_GOOD = (
    r"best|excellent|perfect\w*|great|(?:very )?good|flawless|pristine|clean|clear|sharp\w*|ideal|none|no\b|not|zero"
    r"|absent|\w+-free"
)
_BAD = (
    r"worst|bad|fail\w*|terrible|awful|poor|horrible|extreme\w*|severe\w*|unusable|unacceptable|heavy|heavily"
    r"|strong\w*|very"
    r"|a lot|most|max\w*"
)
_END = re.compile(  # "5 = excellent", "1 (worst)", "where 10 is very noisy"
    r"(?<!\d)(?P<number>\d++)\s*+"
    r"(?:[=:(]|-(?=\s)|is|being|means|meaning|for|stands for|(?<=\s)(?=(?:best|worst|failing)\b))\s*+"
    r"(?:the\s++|a\s++)?"
    rf"(?:(?P<good>{_GOOD})|(?P<bad>{_BAD}))",
    re.I,
)
_HIGHER = re.compile(r"\b(?:higher|larger|bigger|more)\s+(?:is|being|means|=)\s+(better|worse|less|more)", re.I)


@dataclass(frozen=True)
class RatingScale:
    """The ends of a rating scale, low < high; ``best`` is the end that the question calls best, if any."""

    low: float
    high: float
    best: Literal["low", "high"] | None = None

    def at(self, share: float) -> float:
        """Return the number at a fraction, 0 to 1, of the way from low to high."""
        return self.low + share * (self.high - self.low)

    def shown(self, value: float) -> str:
        """Format a number on the scale: "3.4 of 5" or "61 of 100"."""
        span = self.high - self.low
        return f"{value:.{0 if span > 20 else 1 if span > 1 else 2}f} of {self.high:g}"


def stated_scale(query: str) -> RatingScale | None:
    """Return the rating scale that the question states, or ``None``.

    >>> stated_scale("Rate the quality from 0 to 10."), stated_scale("A score out of 100?")
    (RatingScale(low=0.0, high=10.0, best=None), RatingScale(low=0.0, high=100.0, best=None))
    """
    query = in_digits(readable(query))
    rates = bool(RATES.search(query)) or bool(re.search(r"\b(?:how|quality|level|severity)\b", query, re.I))
    ends = sorted({float(end["number"]) for end in _END.finditer(query)})
    span, out_of, points = _BRACKETS.search(query) or _SPAN.search(query), _OUT_OF.search(query), _POINTS.search(query)
    if span and rates and float(span[1]) < float(span[2]):
        low, high = float(span[1]), float(span[2])
    elif rates and len(ends) > 1:
        low, high = ends[0], ends[-1]
    elif out_of and float(out_of[1] or out_of[2]) > 1:
        high = float(out_of[1] or out_of[2])
        low = 1.0 if high == 5 else 0.0
    elif points and rates and float(points[1]) > 1:
        low, high = 1.0, float(points[1])
    elif _PERCENT.search(query) and rates:
        low, high = 0.0, 100.0
    elif _STARS.search(query):
        low, high = 1.0, 5.0
    else:
        return None
    return RatingScale(low, high, _best_end(query, low, high))


def in_digits(text: str) -> str:
    """Convert number words to digits: "from one to ten" becomes "from 1 to 10"."""
    return _NUMBER_WORD.sub(lambda match: str(_NUMBERS[match[0].lower()]), text)


def _best_end(query: str, low: float, high: float) -> Literal["low", "high"] | None:
    if higher := _HIGHER.search(query):
        return {"better": "high", "worse": "low"}.get(higher[1].lower())  # type: ignore[return-value]
    for end in _END.finditer(query):
        number = float(end["number"])
        if number in (low, high):
            return "high" if (number == high) == bool(end["good"]) else "low"
    return None
