"""The probability of each quality level, read from the one token that follows "The quality of the image is".

Q-Align (Wu et al., ICML 2024), OneAlign, DeQA-Score and Q-ReAlign are read so: the logits of the first token of each of
the words excellent, good, fair, poor and bad, softmaxed over these five. The words begin with five different letters,
so whatever tokens a tokenizer makes of them, the first ones differ.
"""

from typing import Any

from agenticiqa.programs.stages.level_logprobs import LevelReading, alternatives_of, first_token, reading_of
from agenticiqa.signatures.vocabulary import LEVELS

WORDS = {name.lower(): level for name, level in LEVELS.items()}


def level_words(logprobs: Any) -> LevelReading | None:
    """The distribution over the five words at the first token of a continuation; ``None`` without alternatives to it.

    ``logprobs`` is what DSPy returns for a call. A word counts by the longest alternative that is the word or its
    beginning, in lower case, all with a blank before them or all without one, whichever has more probability: the
    published readings look at one token for each word. A word that no alternative is has 0, which is too low by at most
    ``1 - mass``.
    """
    token = first_token(logprobs)
    if token is None:
        return None
    alternatives = list(alternatives_of(token))
    forms = [_shares(alternatives, blank) for blank in (" ", "")]
    return reading_of(max(forms, key=lambda shares: sum(shares.values())))


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
