"""Read off a question, without a model, the form of the answer that it asks for, and the scale of a rating."""

import re
from dataclasses import dataclass
from typing import Literal

from agenticiqa.programs.stages.instructions import without_instructions
from agenticiqa.programs.stages.options import parse_options
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import QueryType

BRIEF = 4  # words of a query that asks for a score without saying so: "Your verdict, please."
DEFAULT_QUERY = "Rate the perceptual quality of this image."

_NO_RATIO = r"(?<!compression )(?<!frame )(?<!bit )"
_QUALITY = re.compile(r"\bquality\b", re.I)
_RATING = re.compile(rf"{_NO_RATIO}\brat(?:e|es|ed|ing)\b|\bscor(?:e|es|ed|ing)\b|\b(?:assess|evaluat)\w*", re.I)
_RATE = re.compile(rf"{_NO_RATIO}\b(?:rate|score|assess|evaluate|grade)\b", re.I)
_HOW_GOOD = re.compile(
    r"\bhow(?:'s|\s+(?:good\s+|bad\s+|high\s+|low\s+|poor\s+)?(?:is|was))\s+(?:\w+\s+){0,3}quality\b"
    r"|\bhow\s+(?:good|bad)\s+is\s+(?:this|the|my)\s+(?:\w+\s+)?(?:image|photo|photograph|picture|pic|shot)\b"
    r"|\bhow\s+would\s+you\s+(?:rate|score|grade)\b",
    re.I,
)
_TOOL = re.compile(r"\W*(?:please\s+)?(?:use|run|apply|measure)\b", re.I)
_REASON_FIRST = re.compile(r"^\W*(?:please\s+)?(?:why|explain)\b", re.I)
_EXPLAIN = re.compile(r"\b(?:why|explain|describe|whats?)\b", re.I)
_ASKS = re.compile(
    r"\?|^\W*(?:is|are|was|were|do|does|did|has|have|can|could|how|which|who|where|when)\b"
    r"|\b(?:whether|which|where|whereabouts|tell|check|list|name|find|identify|locate|location|position|compare|discuss"
    r"|comment|point out|left|right|top|bottom|half"
    r"|diagnose|need to know|want to know|spot|differences?)\b"
    r"|\b(?:is|are|does|has) (?:it|this|that|the|there)\b",
    re.I,
)
# What is true or not, whatever else is to be scored: "Evaluate the claim '...'. Reply yes if it holds."
_CLAIMS = re.compile(
    r"\b(?:statement|claim|sentence|assertion)\b"
    r"|\b(?:answer|reply|respond|say|report)\s+(?:(?:with|by|only|just)\s+)*\W?(?:yes|no|true|false)\b",
    re.I,
)
_ENDS_IN_YES_NO = re.compile(
    r"(?:^|[.!?;:]\s+)(?:is|are|was|were|do|does|did|has|have|can|could|would|will)\b(?P<asked>[^.?!]*)\?\W*$", re.I
)
# What a request to rate is about: the picture, or, named before it, one property of it.
_RATED = re.compile(
    r"\b(?:rat(?:e|ing)|scor(?:e|ing)|grade|assess|evaluate|points|marks?|stars|number|percentage)\b|\bscale\b",
    re.I,
)
_OWNER = re.compile(
    r"\b(?:this|the|my|its|an?)\s+(?:\w+\s+)?(?:image|photo|photograph|picture|pic|shot)(?:'s|s')", re.I
)
_WHOLE = re.compile(
    r"\bquality\b|\b(?:image|photo|photograph|picture|pic|shot)s?\b|\b(?:rate|score|grade) (?:it|this)\b", re.I
)
_IN_TERMS_OF = re.compile(
    r"\b(?:for|in terms of|with respect to|regarding|based on|on)\s+(?:its\s+|the\s+|how\s+)*(?=\w)", re.I
)
# "Compute the PSNR" asks for a value in the metric's own unit, "rate it by SSIM" for a score.
_METRIC = (
    r"(?:psnr|(?:ms-?|iw-?)?ssim|niqe|brisque|piqe|gmsd|fsim|vif|mdsi|haarpsi|lpips|dists|ssimulacra2?|vsi"
    r"|(?-i:[A-Z]{2,}[\w-]*(?= value| index)))"
)
_METRIC_VALUE = re.compile(
    rf"(?<!with )(?<!using )(?<!by )(?<!use )(?<!via )(?<!with the )(?<!using the )\b{_METRIC}\b", re.I
)
_SPAN = re.compile(
    r"(?<![\w.])(\d+)\s*(?:\([^)]*\)\s*|=[^,;.]*?|,[^,;.\d]*,\s*(?:up )?)?"
    r"(?:to|and|-|–|through|\.\.)\s*(\d+)(?![\w]|\.\d)",
    re.I,
)
_BRACKETS = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*\]")
_OUT_OF = re.compile(r"\b(?:out\s+of|outt?a|of)\s+(?:a\s+)?(?:possible\s+)?(\d+)\b|\b(?:x|_+)?\s*/\s*(\d+)\b", re.I)
_POINTS = re.compile(r"\b(\d+)[- ](?:point|star|level)s?\b", re.I)
_PERCENT = re.compile(r"(?:\bper\s?cent(?:age)?\b|%)(?! of)", re.I)
NUMBERS = {"zero": 0, "one": 1, "five": 5, "six": 6, "seven": 7, "ten": 10, "twenty": 20, "hundred": 100}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBERS)})\b", re.I)
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
    r"(?P<number>\d+)\s*(?:[=:(]|-(?=\s)|is|being|means|meaning|for|stands for|(?=\s(?:best|worst|failing)\b))\s*"
    r"(?:the\s+|a\s+)?"
    rf"(?:(?P<good>{_GOOD})|(?P<bad>{_BAD}))",
    re.I,
)
_HIGHER = re.compile(r"\b(?:higher|larger|bigger|more)\s+(?:is|being|means|=)\s+(better|worse|less|more)", re.I)


@dataclass(frozen=True)
class Scale:
    """The ends of a rating scale, low < high; ``best`` is the end that the question calls best, if it says so."""

    low: float
    high: float
    best: Literal["low", "high"] | None = None

    def at(self, share: float) -> float:
        """The number at a share of the way from low to high, 0 to 1."""
        return self.low + share * (self.high - self.low)

    def shown(self, value: float) -> str:
        """A number on the scale in words: "3.4 of 5" or "61 of 100"."""
        span = self.high - self.low
        return f"{value:.{0 if span > 20 else 1 if span > 1 else 2}f} of {self.high:g}"


def stated_scale(query: str) -> Scale | None:
    """The scale on which the question wants a rating; ``None`` if it states none.

    >>> stated_scale("Rate the quality from 0 to 10."), stated_scale("A score out of 100?")
    (Scale(low=0.0, high=10.0, best=None), Scale(low=0.0, high=100.0, best=None))
    """
    query = in_digits(query)
    rates = bool(_RATED.search(query)) or bool(re.search(r"\b(?:how|quality|level|severity)\b", query, re.I))
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
    return Scale(low, high, _best_end(query, low, high))


def in_digits(text: str) -> str:
    """The text with numbers that are written as words in digits: "from one to ten" is "from 1 to 10"."""
    return _NUMBER_WORD.sub(lambda match: str(NUMBERS[match[0].lower()]), text)


def _best_end(query: str, low: float, high: float) -> Literal["low", "high"] | None:
    if higher := _HIGHER.search(query):
        return {"better": "high", "worse": "low"}.get(higher[1].lower())  # type: ignore[return-value]
    for end in _END.finditer(query):
        number = float(end["number"])
        if number in (low, high):
            return "high" if (number == high) == bool(end["good"]) else "low"
    return None


def rates_property(query: str) -> bool:
    """Whether a request to rate is about one property ("rate the noise"), not about the quality of the picture."""
    request = _RATED.search(query)
    if not request or re.search(r"\bquality\b", query, re.I):
        return False
    plain = _OWNER.sub(lambda match: " " * len(match[0]), query)
    named = [term for term in terms_in(plain) if term.meaning.subject not in ("any", "quality")]
    if not named:
        return False
    after = [term.start for term in named if term.start > request.start()] or [named[0].start]
    whole = _WHOLE.search(plain, request.start())
    return (
        whole is None
        or after[0] < whole.start()
        or any(match.end() == start for match in _IN_TERMS_OF.finditer(plain) for start in after)
    )


def detect_query_type(query: str, query_type: Literal["IQA", "Other"] = "IQA") -> QueryType:
    """The form of the answer: a letter, a score from 1 to 5, or text.

    A question with options is answered by a letter. A question that is not about quality (``"Other"``) is never scored.
    A request to rate, score, assess or evaluate the quality is scored, also as "What is the quality score?" or "How is
    the quality?", unless it begins with "why" or "explain". Other questions (why, what, describe, is, how blurry, ...),
    the rating of a single property ("Rate the noise from 1 to 5") and the value of a metric ("Compute the PSNR") are
    answered by text, and so is what has many words and none for a picture or a rating; everything else by a score.
    """
    if parse_options(query):
        return QueryType.MCQ
    query = without_instructions(query)
    if query_type == "Other" or _REASON_FIRST.search(query):
        return QueryType.EXPLANATION
    if rates_property(query) or (_METRIC_VALUE.search(query) and not _QUALITY.search(query)):
        return QueryType.EXPLANATION
    ending = _ENDS_IN_YES_NO.search(query)
    if _CLAIMS.search(query) or (ending and not (_RATING.search(ending["asked"]) or _QUALITY.search(ending["asked"]))):
        return QueryType.EXPLANATION
    if (_RATING.search(query) and _QUALITY.search(query)) or _HOW_GOOD.search(query):
        return QueryType.SCORING
    if _RATE.search(query):
        return QueryType.EXPLANATION if _EXPLAIN.search(query) else QueryType.SCORING
    if _EXPLAIN.search(query) or _ASKS.search(query):
        return QueryType.EXPLANATION
    if _TOOL.match(query):
        return QueryType.SCORING
    about = any(term.meaning.subject != "quality" for term in terms_in(query))
    other = len(query.split()) > BRIEF and not (_WHOLE.search(query) or _RATED.search(query))
    return QueryType.EXPLANATION if about or other else QueryType.SCORING
