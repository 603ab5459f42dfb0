"""Read off a question, without a model, the form of the answer that it asks for."""

import re
from typing import Literal

from agenticiqa.programs.stages.instructions import without_instructions
from agenticiqa.programs.stages.options import parse_options
from agenticiqa.signatures.types import QueryType

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
_REASON_FIRST = re.compile(r"^\W*(?:please\s+)?(?:why|explain)\b", re.I)
_EXPLAIN = re.compile(r"\b(?:why|explain|describe|what)\b", re.I)
_ASKS = re.compile(
    r"\?|^\W*(?:is|are|was|were|do|does|did|has|have|can|could|how|which|who|where|when)\b"
    r"|\b(?:whether|tell|check|list|name|find|identify|locate|compare|discuss|comment)\b",
    re.I,
)


def detect_query_type(query: str, query_type: Literal["IQA", "Other"] = "IQA") -> QueryType:
    """The form of the answer: a letter, a score from 1 to 5, or text.

    A question with options is answered by a letter. A question that is not about quality (``"Other"``) is never scored.
    A request to rate, score, assess or evaluate the quality is scored, also as "What is the quality score?" or "How is
    the quality?", unless it begins with "why" or "explain". Other questions (why, what, describe, is, how blurry, ...)
    are answered by text, and everything else ("Measure the noise.") by a score.
    """
    if parse_options(query):
        return QueryType.MCQ
    query = without_instructions(query)
    if query_type == "Other" or _REASON_FIRST.search(query):
        return QueryType.EXPLANATION
    if (_RATING.search(query) and _QUALITY.search(query)) or _HOW_GOOD.search(query):
        return QueryType.SCORING
    if _EXPLAIN.search(query) or (_ASKS.search(query) and not _RATE.search(query)):
        return QueryType.EXPLANATION
    return QueryType.SCORING
