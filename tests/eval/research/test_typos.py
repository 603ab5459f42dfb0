"""Questions are misspelled in one place."""

import random

from agenticiqa.eval.research.typos import mistyped


def test_a_text_is_mistyped_in_one_place() -> None:
    rng = random.Random(0)
    for text in ("noise", "is it sharp?", "a", ""):
        for _ in range(20):
            assert abs(len(mistyped(text, rng)) - len(text)) <= 1
