"""The study of a classifier as the fallback: made-up findings give the answers that the rules should find."""

import pytest

from agenticiqa.eval.questions.fallback_study import NOUNS, PLAIN, answer, marks, measured, noun
from agenticiqa.eval.questions.wordings import Wording


@pytest.mark.parametrize("concept", ["blur", "noise", *NOUNS])
def test_plain_questions_are_answered_rightly(concept: str) -> None:
    for kind, truth in (("presence", "yes"), ("negation", "no"), ("degree", "-")):
        row = Wording(kind, "plain", concept, truth, PLAIN[kind].format(noun(concept)), {})
        found = marks([row], None)
        assert found["wrong"] == 0
        assert found["right"] >= 1


def test_what_is_measured_is_answered() -> None:
    assert answer("Is it noisy?", measured("noise")).startswith("Yes")
    assert answer("Is it noisy?", measured("")).startswith("No")
