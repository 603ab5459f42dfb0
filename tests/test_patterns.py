"""Check that no regular expression of the product takes long on a text that a model, a server or a file wrote."""

from time import process_time
from typing import Any

import pytest
from test_floors import FOLDERS

from support.patterns import Found, patterns_in, slow_texts

FIRST, NEXT, LENGTH = 1_000, 4_000, 100_000  # characters of texts: of each kind, and twice of the slowest kind
MOST_SECONDS = 1.0  # seconds of processor time


def seconds(found: Found, method: str, text: Any) -> float:
    """Return the processor time of a method of a pattern on a text."""
    arguments = (text[:0], text) if method in ("sub", "subn") else (text,)
    began = process_time()
    result = getattr(found.pattern, method)(*arguments)
    if method == "finditer":
        list(result)
    return process_time() - began


def slowest(found: Found, kinds: int) -> tuple[float, str, int]:
    """Return the time, the method and the number of the text of ``FIRST`` characters on which a pattern is slowest."""
    runs = [
        (seconds(found, method, text), method, number)
        for number, text in enumerate(slow_texts(found.pattern, FIRST, kinds))
        for method in found.methods
    ]
    return max(runs, default=(0.0, "", 0))


@pytest.mark.parametrize(("kinds", "unread"), [(6, "agenticiqa.eval"), pytest.param(200, None, marks=pytest.mark.slow)])
def test_no_pattern_takes_long_on_a_long_text(kinds: int, unread: str | None) -> None:
    folders = {name: folder for name, folder in FOLDERS.items() if name != unread}
    # A pattern of quadratic time above the limit takes at least this long for a text of NEXT characters.
    least, slow, tried = MOST_SECONDS * (NEXT / LENGTH) ** 2, list[str](), 0
    for found in patterns_in(folders):
        tried += 1
        spent, method, number = slowest(found, kinds)
        for length in (NEXT, LENGTH):
            if least / 20 < spent < MOST_SECONDS and (length == NEXT or spent > least):
                text = list(slow_texts(found.pattern, length, kinds))[number]
                spent = min(seconds(found, method, text) for _ in range(3))  # other processes slow a single run
                if spent > MOST_SECONDS * length / LENGTH:
                    spent = max(spent, 2 * MOST_SECONDS)  # a longer text would take at least as long for its length
        if spent > MOST_SECONDS:
            slow.append(f"{found.place}: {found.pattern.pattern[:80]!r}: {spent:.2f} s")
    assert tried > 200
    assert not slow, "\n".join(slow)
