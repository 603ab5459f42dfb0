"""Misspell words as people do who type in a hurry: two letters swapped, or one left out or doubled."""

import random

LEAST = 5  # letters of a word that is misspelled in a question; the letter of an option never is


def mistyped(text: str, rng: random.Random) -> str:
    """The text with two letters swapped, or one of them left out or doubled."""
    at = rng.randrange(max(1, len(text) - 1))
    first, second = text[at : at + 1], text[at + 1 : at + 2]
    return text[:at] + rng.choice((second + first, second, first * 2)) + text[at + 2 :]


def with_typos(text: str, count: int) -> str:
    """The text with ``count`` of its longer words misspelled; the same text always gets the same ones."""
    rng, words = random.Random(text), text.split(" ")
    long = [place for place, word in enumerate(words) if len(word) >= LEAST and word.isalpha()]
    for place in rng.sample(long, min(count, len(long))):
        words[place] = mistyped(words[place], rng)
    return " ".join(words)
