"""How much of what a model writes is read: checked before any parser, none of which bounds its own time."""

import re

from agenticiqa.programs.backends.cleaning import without_thoughts
from agenticiqa.programs.backends.loose_json import plain_characters

LONGEST = 64_000  # characters without the reasoning before the answer; eight times what 2,048 tokens make
LONGEST_WITH_THOUGHTS = 1_000_000
DEEPEST = 64  # brackets that are open at once
MOST_BRACKETS = 500  # opening ones; an answer about sixteen regions has less than 200
MOST_DIGITS = 300  # of a number; a float has at most 309

_BRACKETS = re.compile(r"[{\[]+|[}\]]+")
_LONG_NUMBER = re.compile(rf"(?<![\d_])\d[\d_]{{{MOST_DIGITS}}}|0[xX][\da-fA-F_]{{{MOST_DIGITS * 5 // 6}}}")


def too_much(text: str) -> str | None:
    """Why a text is too long, too deep or too large a number to be read, for the model; ``None`` where it is read.

    The time that it takes, and that reading takes where it gives ``None``, grows with the length of the text only.
    """
    if len(text) <= LONGEST_WITH_THOUGHTS:
        text = without_thoughts(text)
    if len(text) > LONGEST:
        return f"the answer is too long: it has {len(text):,} characters, and at most {LONGEST:,} are read"
    text = plain_characters(text)
    if _depth(text) > DEEPEST:
        return f"the answer is nested too deeply: more than {DEEPEST} brackets are open at once"
    if text.count("{") + text.count("[") > MOST_BRACKETS:
        return f"the answer has too many brackets: more than {MOST_BRACKETS:,}"
    if _LONG_NUMBER.search(text):
        return f"a number in the answer is too long: it has more than {MOST_DIGITS} digits"
    return None


def _depth(text: str) -> int:
    """The most brackets that are open at once; those in strings count, and one that closes nothing does not."""
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        count = match.end() - match.start()
        depth = depth + count if match[0][0] in "{[" else max(depth - count, 0)
        deepest = max(deepest, depth)
    return deepest
