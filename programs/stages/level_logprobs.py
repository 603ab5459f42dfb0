"""The probability of each quality level, read from the log-probabilities of the tokens that named it.

Q-Align (Wu et al., ICML 2024), OneAlign, DeQA-Score and Q-ReAlign are read by ``level_words``: the logits of the first
token of each of the words excellent, good, fair, poor and bad, softmaxed over these five. The words begin with five
different letters, so whatever tokens a tokenizer makes of them, the first ones differ.
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenticiqa.programs.backends.level_token import FIELD, level_place, plain
from agenticiqa.programs.fusion.formula import Probabilities
from agenticiqa.signatures.level_probs import stated_level
from agenticiqa.signatures.vocabulary import LEVELS

logger = logging.getLogger(__name__)

LEAST_MASS = 0.5
FEWEST = 2  # alternatives: one alone would count as certainty, whatever its probability
LEAST_OWN = 0.1  # of the most probable one's share: a token far below was not drawn from this distribution
WORDS = {name.lower(): level for name, level in LEVELS.items()}
MOST_MASS = 1.01  # more than rounding explains: these are no log-probabilities

_SPELLED = re.compile(r'\s*:\s*"?([^",}\n]+)["},\n]')
_WORD = re.compile(r"""[\s"':,{]*([^\W_]+)(?=[\s"',}]|$)""")


@dataclass(frozen=True)
class LevelReading:
    """The probabilities of the levels 1..5, as the tokens have them.

    ``mass`` is the probability, before normalization, that fell on any level, in [0, 1]. ``probabilities`` sum to one;
    they are ``None`` where ``mass`` is under one half. A level that is in none of the alternatives has 0, which is
    too low by at most ``1 - mass``.
    """

    probabilities: Probabilities | None
    mass: float


def level_probabilities_from_tokens(logprobs: Any) -> LevelReading | None:
    """The distribution over the levels at the token where the answer names its level; ``None`` without such a token.

    Also ``None`` where it has no alternatives, or is far less probable than one of them: then these are no
    log-probabilities of this answer. ``logprobs`` is what DSPy returns for a call: an object or mapping with
    ``content``, a list of tokens with their ``top_logprobs``. Every alternative counts for the level that it names or
    begins to name: by number or word, in any case, ignoring blanks, quotes and commas around it.
    """
    tokens = list(_get(logprobs, "content") or ()) if logprobs else []
    place = level_place([str(_get(token, "token")) for token in tokens])
    if place is None:
        return None
    token, before = tokens[place.number], place.before
    alternatives = list(_alternatives_of(token))
    if not _are_usable(token, alternatives):
        return None
    shares = dict.fromkeys(sorted(LEVELS.values()), 0.0)
    for text, share in alternatives:
        level = _level_begun(text.removeprefix(before))
        if level is not None:
            shares[level] += share
    return _reading_of(shares)


def level_words(logprobs: Any) -> LevelReading | None:
    """The distribution over the five words at the first token of a continuation; ``None`` without alternatives to it.

    ``logprobs`` is what DSPy returns for a call. A word counts by the longest alternative that is the word or its
    beginning, in lower case, all with a blank before them or all without one, whichever has more probability: the
    published readings look at one token for each word. A word that no alternative is has 0, which is too low by at most
    ``1 - mass``.
    """
    token = _first_token(logprobs)
    if token is None:
        return None
    alternatives = list(_alternatives_of(token))
    forms = [_shares(alternatives, blank) for blank in (" ", "")]
    return _reading_of(max(forms, key=lambda shares: sum(shares.values())))


def _first_token(logprobs: Any) -> Any:
    """The first token of an answer, as DSPy returns it; ``None`` where it cannot be read, as above."""
    token = next(iter(_get(logprobs, "content") or ()), None) if logprobs else None
    return token if token is not None and _are_usable(token, list(_alternatives_of(token))) else None


def _reading_of(shares: Mapping[int, float]) -> LevelReading | None:
    """The reading of the probability that fell on each level; ``None`` for a sum that no probabilities have."""
    mass = math.fsum(shares.values())
    if mass > MOST_MASS:
        logger.warning("the server's log-probabilities sum to %.2f at the level's token: not used", mass)
        return None
    if mass < LEAST_MASS:
        logger.warning("only %.2f of the level token's probability falls on quality levels: not used", mass)
        return LevelReading(None, mass)
    return LevelReading({level: share / mass for level, share in shares.items()}, min(mass, 1.0))


def level_in_tokens(logprobs: Any) -> int | None:
    """The level that the tokens spell where the answer names its level; ``None`` where they spell no whole one."""
    text = "".join(_text(token) for token in (_get(logprobs, "content") or ())) if logprobs else ""
    field = text.rfind(FIELD)
    spelled = _SPELLED.match(text, field + len(FIELD)) if field >= 0 else None
    return stated_level(spelled[1]) if spelled else None


def _alternatives_of(token: Any) -> Iterator[tuple[str, float]]:
    """The alternatives for a token with their probabilities; the token itself is added where it is not listed."""
    listed = list(_get(token, "top_logprobs") or ())
    if all(_get(each, "token") != _get(token, "token") for each in listed):
        listed.append(token)
    for each in listed:
        if (share := _share(each)) is not None:
            yield _text(each), share


def _are_usable(token: Any, alternatives: Iterable[tuple[str, float]]) -> bool:
    """Whether a token has alternatives, and is not far less probable than one of them; what is wrong is logged."""
    shares = [share for _, share in alternatives]
    if len(shares) < FEWEST:
        logger.warning("the server gives no alternatives to the level's token: not used")
        return False
    if _own_share(token) < LEAST_OWN * max(shares):
        logger.warning("the level's token is not what its log-probabilities say: not used")
        return False
    return True


def _share(entry: Any) -> float | None:
    logprob = _get(entry, "logprob")
    known = isinstance(logprob, int | float) and not math.isnan(logprob)
    return math.exp(min(logprob, 1.0)) if known else None


def _own_share(token: Any) -> float:
    """The probability of the token itself, as it is listed among the alternatives, else as it stands beside them."""
    listed = [each for each in _get(token, "top_logprobs") or () if _get(each, "token") == _get(token, "token")]
    return max((_share(each) or 0.0 for each in listed or [token]), default=0.0)


def _level_begun(text: str) -> int | None:
    word = _WORD.match(text)
    begun = word[1].lower() if word else ""
    if begun.isdigit():
        return int(begun) if begun in map(str, LEVELS.values()) else None
    matches = [number for name, number in LEVELS.items() if begun and name.lower().startswith(begun)]
    return matches[0] if len(matches) == 1 else None


def _text(token: Any) -> str:
    return plain(str(_get(token, "token")))


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _shares(alternatives: list[tuple[str, float]], blank: str) -> dict[int, float]:
    """By level the probability of its word, with this before it."""
    shares = dict.fromkeys(sorted(WORDS.values()), 0.0)
    longest = dict.fromkeys(shares, "")
    for text, share in alternatives:
        begun = text.removeprefix(blank) if text.startswith(blank) else ""
        level = next((level for word, level in WORDS.items() if begun and word.startswith(begun)), None)
        if level is not None and len(begun) > len(longest[level]):
            longest[level], shares[level] = begun, share
    return shares
