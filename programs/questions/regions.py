"""Tell whether a question names a region, by its words."""

import re

from agenticiqa.signatures.lexicon import distortions_in, terms_in

# Words of a region's name that say nothing about which region it is.
_GENERAL = re.compile(
    r"(?:a|an|the|of|in|on|at|to|and|or|with|this|that|its|whole|entire|overall|full|image|photo|picture|photograph|scene|"
    r"quality|perceptual|perceived|visual|rating|score|level|region|area|part|object|global)"
)
# What an image shows describes the image; it is no region of it.
_DESCRIPTION = re.compile(r"\b(?P<image>image|photo|photograph|picture|snapshot) of (?:(?! and )[^,.;:?!()\n])+", re.I)
_SAME_STEM = 3  # most letters of an ending, such as the plural's
_SHORTEST_STEM = 3  # letters


def names_region(query: str, region: str) -> bool:
    """Return whether a question or its options have a word of a region's name.

    Words for the whole image, for what it shows, and for quality do not count, and endings do not matter.

    >>> names_region("Are the cats sharp?", "the cat"), names_region("Rate this photo of a cat.", "cat")
    (True, False)
    """
    query = _DESCRIPTION.sub(r"\g<image>", query)
    words, asked = _words(region), _words(query)
    if not words:
        return False
    if region.strip().casefold() in query.casefold():
        return True
    return any(_is_same(word, other) for word in words for other in asked)


def _words(text: str) -> list[str]:
    """Return the words that can tell regions apart."""
    phrases = [term.text for term in terms_in(text)] + [phrase for phrase, _ in distortions_in(text)]
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, " ")
    return [word for word in re.findall(r"\w+", text.casefold()) if not _GENERAL.fullmatch(word)]


def _is_same(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    return len(short) >= _SHORTEST_STEM and long.startswith(short) and len(long) - len(short) <= _SAME_STEM
