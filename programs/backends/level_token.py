"""Of the log-probabilities of an answer, only those of the token that names the quality level.

A server lists twenty alternatives for each of some 300 tokens: a megabyte in memory and 110 KB in DSPy's cache for one
answer, of which one token is read.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from dspy import lm15

FIELD = '"quality_level"'
_BEFORE_VALUE = re.compile(r'\s*:\s*"?\s*')
# Some servers return their tokenizer's own marks for a blank and a newline.
_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})


class Place(NamedTuple):
    """The token in which the name of the level begins: its number, from 0, and its text before that name."""

    number: int
    before: str


def level_place(tokens: Sequence[str]) -> Place | None:
    """Where the tokens of an answer name its level; ``None`` where they do not."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += plain(token)
    field = text.rfind(FIELD)  # of two JSON objects the last one counts
    opening = _BEFORE_VALUE.match(text, field + len(FIELD)) if field >= 0 else None
    if opening is None or opening.end() >= len(text):
        return None
    at = max(index for index, start in enumerate(starts) if start <= opening.end())
    return Place(at, text[starts[at] : opening.end()])


def level_token_only(logprobs: Sequence[lm15.TokenLogprob]) -> tuple[lm15.TokenLogprob, ...]:
    """The level's token with its alternatives, and the text before and after it as one token each.

    The log-probability of such a text is the sum over its tokens. All of them, where none names a level.
    """
    place = level_place([each.token for each in logprobs])
    if place is None:
        return tuple(logprobs)
    return *_joined(logprobs[: place.number]), logprobs[place.number], *_joined(logprobs[place.number + 1 :])


def plain(token: str) -> str:
    """The text of a token as it stands in the answer."""
    return token.translate(_MARKS)


def _joined(tokens: Sequence[lm15.TokenLogprob]) -> tuple[lm15.TokenLogprob, ...]:
    if not tokens:
        return ()
    text = "".join(each.token for each in tokens)
    return (lm15.TokenLogprob(token=text, logprob=math.fsum(each.logprob for each in tokens)),)
