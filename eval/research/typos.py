"""Misspell texts as people do: swap two letters, or omit or double one."""

import random


def mistyped(text: str, rng: random.Random) -> str:
    """Return the text with two letters swapped, or one letter omitted or doubled."""
    at = rng.randrange(max(1, len(text) - 1))
    first, second = text[at : at + 1], text[at + 1 : at + 2]
    return text[:at] + rng.choice((second + first, second, first * 2)) + text[at + 2 :]
