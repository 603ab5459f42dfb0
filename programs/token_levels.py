"""The probability of each quality level, read from the log-probabilities of the tokens that named it."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from agenticiqa.programs.fusion import Probabilities
from agenticiqa.signatures.vocabulary import LEVELS

logger = logging.getLogger(__name__)

FIELD = '"quality_level"'
LEAST_MASS = 0.5


def level_probabilities_from_tokens(logprobs: Any) -> Probabilities | None:
    """The distribution over the levels 1..5 at the token where the answer names its level; it sums to one.

    ``logprobs`` is what DSPy gives for a call: an object or mapping with ``content``, a list of tokens with their
    ``top_logprobs``. Alternatives count for the level whose name they begin. ``None`` when there is no such token or
    less than half of its probability falls on levels.
    """
    tokens = list(_get(logprobs, "content") or ()) if logprobs else []
    at = _value_token(tokens)
    if at is None:
        return None
    shares = dict.fromkeys(sorted(LEVELS.values()), 0.0)
    alternatives = _get(tokens[at], "top_logprobs") or [tokens[at]]
    for alternative in alternatives:
        level = _level_begun(str(_get(alternative, "token")))
        if level is not None:
            shares[level] += math.exp(float(_get(alternative, "logprob")))
    mass = math.fsum(shares.values())
    if mass < LEAST_MASS:
        logger.warning("only %.2f of the level token's probability falls on quality levels: not used", mass)
        return None
    return {level: share / mass for level, share in shares.items()}


def _value_token(tokens: list[Any]) -> int | None:
    """The index of the token that holds the first letter of the level's name."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += str(_get(token, "token"))
    field = text.rfind(FIELD)  # of two JSON objects the last one counts
    quote = text.find('"', field + len(FIELD)) if field >= 0 else -1
    if quote < 0 or quote + 1 >= len(text):
        return None
    return max(index for index, start in enumerate(starts) if start <= quote + 1)


def _level_begun(token: str) -> int | None:
    begun = token.strip(' \n\t":,{}').lower()
    matches = [number for name, number in LEVELS.items() if begun and name.lower().startswith(begun)]
    return matches[0] if len(matches) == 1 else None


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
