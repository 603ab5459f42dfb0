"""Determine, without a model, the form of the answer that a question requests."""

import re
from typing import Literal

from agenticiqa.programs.questions.instructions import readable, without_instructions
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.programs.questions.scale import RATES
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import QueryType

BRIEF = 4  # words of a query that asks for a score without saying so: "Your verdict, please."

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
# Claims that are true or false, even beside a request for a score: "Evaluate the claim '...'. Reply yes if it holds."
_CLAIMS = re.compile(
    r"\b(?:statement|claim|sentence|assertion)\b"
    r"|\b(?:answer|reply|respond|say|report)\s+(?:(?:with|by|only|just)\s+)*\W?(?:yes|no|true|false)\b",
    re.I,
)
_ENDS_IN_YES_NO = re.compile(
    r"(?:^|[.!?;:]\s+)(?:is|are|was|were|do|does|did|has|have|can|could|would|will)\b(?P<asked>[^.?!]{0,999})\?\W*+$",
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
    r"|(?-i:[A-Z]{2}[\w-]{0,30}(?= value| index)))"
)
_METRIC_VALUE = re.compile(
    rf"(?<!with )(?<!using )(?<!by )(?<!use )(?<!via )(?<!with the )(?<!using the )\b{_METRIC}\b", re.I
)


def rates_property(query: str) -> bool:
    """Return whether a rating request is about one property ("rate the noise"), not about the image's quality."""
    query = readable(query)
    request = RATES.search(query)
    if not request or re.search(r"\bquality\b", query, re.I):
        return False
    plain = _OWNER.sub(lambda match: " " * len(match[0]), query)
    terms = [term for term in terms_in(plain) if term.meaning.is_about_distortions]
    if not terms:
        return False
    after = [term.start for term in terms if term.start > request.start()] or [terms[0].start]
    whole = _WHOLE.search(plain, request.start())
    return (
        whole is None
        or after[0] < whole.start()
        or any(match.end() == start for match in _IN_TERMS_OF.finditer(plain) for start in after)
    )


def detect_query_type(query: str, query_type: Literal["IQA", "Other"] = "IQA") -> QueryType:
    """Return the form of the answer: a letter, a score from 1 to 5, or text.

    A question with options is answered by a letter. A question that is not about quality (``"Other"``) is never scored.
    A request to rate, score, assess or evaluate the quality is scored, also as "What is the quality score?" or "How is
    the quality?", unless it begins with "why" or "explain". Other questions (why, what, describe, is, how blurry, ...),
    the rating of a single property ("Rate the noise from 1 to 5") and the value of a metric ("Compute the PSNR") are
    answered by text, as are long texts without words for a picture or a rating. Everything else is scored.
    """
    if parse_options(query):
        return QueryType.MCQ
    query = readable(without_instructions(query))
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
    other = len(query.split()) > BRIEF and not (_WHOLE.search(query) or RATES.search(query))
    return QueryType.EXPLANATION if about or other else QueryType.SCORING
