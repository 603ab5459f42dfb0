"""Questions are misspelled in a few longer words, the same way each time."""

import random

from agenticiqa.eval.research.typos import mistyped, with_typos


def test_a_text_is_mistyped_in_one_place() -> None:
    rng = random.Random(0)
    for text in ("noise", "is it sharp?", "a", ""):
        for _ in range(20):
            assert abs(len(mistyped(text, rng)) - len(text)) <= 1


def test_only_longer_words_are_misspelled_and_always_the_same_ones() -> None:
    text = "Is there noise in the picture? A. visible B. not visible"
    changed = with_typos(text, 1)
    words = list(zip(text.split(), changed.split(), strict=True))
    assert [old for old, new in words if old != new] in (["there"], ["noise"], ["visible"])
    assert with_typos(text, 1) == changed
    assert with_typos(text, 0) == text
    assert with_typos("Is it dark?", 3) == "Is it dark?"
