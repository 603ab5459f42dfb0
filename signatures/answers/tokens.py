"""Read the probability of each quality level from the log-probabilities of the tokens that name it.

An answer names its level under ``quality_level``, or chooses the letter of one, A to E, under ``final_answer``.

``level_words`` is for Q-Align (Wu et al., ICML 2024), OneAlign, DeQA-Score and Q-ReAlign: it takes the softmax over the
logits of the first tokens of the words excellent, good, fair, poor and bad. The words begin with five different
letters, so their first tokens differ with any tokenizer.
"""

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dspy import lm15

from agenticiqa.signatures.answers.levels import chosen_level
from agenticiqa.signatures.types import MassFrom
from agenticiqa.signatures.vocabulary import CHOICES, LEVELS

logger = logging.getLogger(__name__)

LEAST_MASS = 0.5
# Within a schema the model must name a level, so a small share before the grammar is still its choice among levels.
# With a smaller share than this, the twenty alternatives may not have all levels.
LEAST_MASS_IN_SCHEMA = 0.1
EXCLUDED = 1e-20  # share of a token that a grammar excludes; vLLM reports the logarithm -9999
FEWEST = 2  # alternatives; a single one would count as certain, regardless of its probability
LEAST_OWN = 0.1  # ratio to the most probable alternative; a token below was not sampled from this distribution
MOST_MASS = 1.01  # a larger sum is not rounding: the values are not log-probabilities
WORDS = {name.lower(): level for name, level in LEVELS.items()}
NAMES = WORDS | {str(level): level for level in LEVELS.values()}

# An answer with a level may have further keys, so its own field comes first.
FIELDS = ("quality_level", "final_answer")
LETTERS = {letter.lower(): LEVELS[name] for letter, name in CHOICES.items()}
_BEFORE_VALUE = re.compile(r'\s*:\s*"?\s*')
_IS_LETTER = re.compile(r"[A-Ea-e][^\w']")  # the beginning of "B" and "B. Good", but not of "Bad"
_VALUE = re.compile(r'\s*+:\s*+"?([^",}\n]++)["},\n]')
_WORD = re.compile(r"""[\s"':,{]*([^\W_]+)(?=[\s"',}]|$)""")
# Some servers return their tokenizer's marks for a blank and a newline.
_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})


class LevelReading(NamedTuple):
    """The probabilities of the levels 1..5 from the tokens.

    ``mass`` is the total probability of the levels before normalization, in [0, 1]; ``mass_from`` says among which
    tokens. ``probabilities`` sum to one; they are ``None`` if ``mass`` is too small. A level without an alternative has
    0, which is too low by at most ``1 - mass``.
    """

    probabilities: dict[int, float] | None
    mass: float
    mass_from: MassFrom = "free text"


def level_probabilities_from_tokens(logprobs: Any, *, in_schema: bool = False) -> LevelReading | None:
    """Return the distribution over the levels at the token where the answer names its level, or ``None``.

    It is also ``None`` if the token has no alternatives, or is far less probable than one of them. Then they are not
    the log-probabilities of this answer. ``logprobs`` is what DSPy returns for a call: an object or mapping with
    ``content``, a list of tokens with their ``top_logprobs``. Every alternative counts for the level that it names or
    begins to name: by number or word, in any case, ignoring blanks, quotes and commas around it. ``in_schema`` is
    whether the server was asked to enforce a schema.
    """
    tokens = tokens_of(logprobs)
    place = _level_place([str(_get(token, "token")) for token in tokens])
    if place is None:
        return None
    at, before, names = place
    # A grammar may exclude the most probable tokens, so within a schema only those that name a level are compared.
    names_level = partial(_levels_meant, names, before) if in_schema else None
    alternatives = _alternatives(tokens[at], names_level)
    if alternatives is None:
        return None
    shares, beside = dict.fromkeys(sorted(LEVELS.values()), 0.0), 0.0
    for text, share in alternatives:
        meant = _levels_meant(names, before, text)
        for level in meant:
            shares[level] += share
        if not meant:
            beside += share
    if not in_schema:
        return _reading_of(shares)
    return _reading_of(shares, "before grammar" if beside > EXCLUDED else "after grammar")


def gives_levels(logprobs: Any, in_schema: bool) -> bool:
    """Return whether enough of the probability at the level's token falls on levels."""
    reading = level_probabilities_from_tokens(logprobs, in_schema=in_schema)
    return reading is not None and reading.probabilities is not None


def level_words(logprobs: Any) -> LevelReading | None:
    """Return the distribution over the five words at the first token of a continuation, or ``None``.

    It is ``None`` without alternatives. ``logprobs`` is what DSPy returns for a call. A word has the probability of the
    longest alternative that is the word or its beginning, in lower case. The alternatives have a leading blank or not,
    whichever is more probable in total, because the published methods use one token per word. A word without an
    alternative has 0, which is too low by at most ``1 - mass``.
    """
    tokens = tokens_of(logprobs)
    alternatives = _alternatives(tokens[0]) if tokens else None
    if alternatives is None:
        return None
    forms = [_shares_of_words(alternatives, blank) for blank in (" ", "")]
    return _reading_of(max(forms, key=lambda shares: sum(shares.values())))


def level_in_tokens(logprobs: Any) -> int | None:
    """Return the level that the tokens spell where the answer names its level; ``None`` if it is incomplete."""
    text = "".join(map(_text, tokens_of(logprobs)))
    for name in FIELDS:
        _, found, rest = text.rpartition(f'"{name}"')
        spelled = _VALUE.match(rest) if found else None
        if spelled and (level := chosen_level(spelled[1])) is not None:
            return level
    return None


def level_token_only(logprobs: Sequence[lm15.TokenLogprob]) -> tuple[lm15.TokenLogprob, ...]:
    """Keep the level's token with its alternatives, and join the text before and after it to one token each.

    The log-probability of a joined text is the sum over its tokens. All tokens are kept if none names a level. A server
    lists twenty alternatives for each of some 300 tokens, 110 KB in DSPy's cache, but only one token is needed.
    """
    place = _level_place([logprob.token for logprob in logprobs])
    if place is None:
        return tuple(logprobs)
    at = place[0]
    return *_joined(logprobs[:at]), logprobs[at], *_joined(logprobs[at + 1 :])


def _level_place(tokens: Sequence[str]) -> tuple[int, str, Mapping[str, int]] | None:
    """Return the index of the token in which the name of the level begins, its text before it, and the names there."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += token.translate(_MARKS)
    for name in FIELDS:
        field = text.rfind(f'"{name}"')  # the last of two JSON objects counts
        opening = _BEFORE_VALUE.match(text, field + len(name) + 2) if field >= 0 else None
        if opening is None or opening.end() >= len(text) or text.startswith("null", opening.end()):
            continue
        at = max(index for index, start in enumerate(starts) if start <= opening.end())
        names = LETTERS if _IS_LETTER.match(text, opening.end()) else NAMES
        return at, text[starts[at] : opening.end()], names
    return None


def _levels_meant(names: Mapping[str, int], before: str, text: str) -> list[int]:
    """Return the levels that an alternative names or begins to name after the text ``before``."""
    begun = _WORD.match(text.removeprefix(before))
    return [level for name, level in names.items() if begun and name.startswith(begun[1].lower())]


def _alternatives(token: Any, is_possible: Callable[[str], object] | None = None) -> list[tuple[str, float]] | None:
    """Return the alternatives for a token, including itself, with their probabilities; ``None`` if unusable.

    They are unusable if the token itself is far less probable than one that ``is_possible``.
    """
    listed = list(_get(token, "top_logprobs") or ())
    own = [entry for entry in listed if _get(entry, "token") == _get(token, "token")]
    if not own:
        own = [token]
        listed.append(token)
    pairs = [(_text(entry), share) for entry in listed if (share := _share(entry)) is not None]
    if len(pairs) < FEWEST:
        logger.warning("the server gives no alternatives to the level's token: not used")
        return None
    possible = [share for text, share in pairs if is_possible is None or is_possible(text)]
    if max(_share(entry) or 0.0 for entry in own) < LEAST_OWN * max(possible, default=0.0):
        logger.warning("the level's token is not what its log-probabilities say: not used")
        return None
    return pairs


def _reading_of(shares: Mapping[int, float], mass_from: MassFrom = "free text") -> LevelReading | None:
    """Return the level probabilities; ``None`` if they sum to more than 1."""
    mass = math.fsum(shares.values())
    if mass > MOST_MASS:
        logger.warning("the server's log-probabilities sum to %.2f at the level's token: not used", mass)
        return None
    if mass < (LEAST_MASS if mass_from == "free text" else LEAST_MASS_IN_SCHEMA):
        logger.warning("only %.2f of the level token's probability falls on quality levels: not used", mass)
        return LevelReading(None, mass, mass_from)
    return LevelReading({level: share / mass for level, share in shares.items()}, min(mass, 1.0), mass_from)


def _shares_of_words(alternatives: Sequence[tuple[str, float]], blank: str) -> dict[int, float]:
    """Return the probability of each level's word, preceded by ``blank``."""
    shares = dict.fromkeys(sorted(WORDS.values()), 0.0)
    longest = dict.fromkeys(shares, "")
    for text, share in alternatives:
        begun = text.removeprefix(blank) if text.startswith(blank) else ""
        level = next((level for word, level in WORDS.items() if begun and word.startswith(begun)), None)
        if level is not None and len(begun) > len(longest[level]):
            longest[level], shares[level] = begun, share
    return shares


def tokens_of(logprobs: Any) -> list[Any]:
    """Return the tokens of an answer with their log-probabilities; empty if the server gave none."""
    return list(_get(logprobs, "content") or ()) if logprobs else []


def _text(token: Any) -> str:
    return str(_get(token, "token")).translate(_MARKS)


def _share(entry: Any) -> float | None:
    logprob = _get(entry, "logprob")
    known = isinstance(logprob, int | float) and not math.isnan(logprob)
    return math.exp(min(logprob, 1.0)) if known else None


def _joined(tokens: Sequence[lm15.TokenLogprob]) -> tuple[lm15.TokenLogprob, ...]:
    if not tokens:
        return ()
    text = "".join(token.token for token in tokens)
    return (lm15.TokenLogprob(token=text, logprob=math.fsum(token.logprob for token in tokens)),)


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
