"""Recognize a request to rate the whole image that names nothing else, so that its plan needs no model."""

import re

from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.signatures.types import QueryType

# With these words alone, a question can name neither a region nor a distortion nor a tool.
_WORDS = re.compile(
    r"a|all|an|and|as|assess|assessment|between|can|could|evaluate|evaluation|from|give|grade|how|i|is|it|its|judge|me"
    r"|mean|mos|my|number|of|on|opinion|or|out|over|overall|perceived|perceptual|photo|photograph|picture|image|please"
    r"|quality|rate|rating|scale|score|tell|that|the|this|to|us|using|visual|what|with|would|you|your|\d+(?:\.\d+)?"
)
_RATES = re.compile(r"\b(?:rate|rating|score|grade|assess|evaluate|quality)\b", re.I)
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")


def is_plain_rating(query: str) -> bool:
    """Return whether a question has only words for a rating of the whole image, and numbers.

    >>> is_plain_rating("Rate the perceptual quality of this image."), is_plain_rating("Rate the quality of the cup.")
    (True, False)
    """
    words = [word.casefold() for word in _WORD.findall(query)]
    is_known = _RATES.search(query) is not None and all(map(_WORDS.fullmatch, words))
    return is_known and detect_query_type(query) is QueryType.SCORING
