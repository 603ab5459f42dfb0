"""Where something is: the worst part, or the best one where that is asked for."""

import pytest

from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.places import find_place
from agenticiqa.programs.offline.language.reader import read_question
from agenticiqa.signatures.vocabulary import DETECTABLE


def damaged_on_the_left(name: str) -> MeasuredImage:
    severity = 3.0 if "left" in name else 0.0
    return MeasuredImage({each: Finding(severity, "", "") for each in DETECTABLE}, 3.0)


@pytest.mark.parametrize(
    ("query", "half"),
    [
        ("Which half is sharper?", "right"),
        ("Which half is less sharp?", "left"),
        ("Which half is not sharp?", "left"),
        ("Which half is noisier?", "left"),
        ("Which half is less noisy?", "right"),
        ("Which half is the least affected by noise?", "right"),
        ("Which half is cleaner, left or right?", "right"),
        ("Which half is better?", "right"),
    ],
)
def test_which_half(query: str, half: str) -> None:
    found = find_place(query, read_question(query, {}).claim, {}, damaged_on_the_left)
    assert found.answer == f"The {half} half"


@pytest.mark.parametrize(
    ("query", "letter"),
    [
        ("The blurring does not cover the entire frame. Whereabouts is it?", "A"),
        ("One part of this frame was spoiled by pixel noise. Mark it.", "A"),
        ("Somebody poured noise over half of it. Which?", "A"),
        ("Which is the sharpest?", "B"),
    ],
)
def test_options_that_are_places_ask_where(query: str, letter: str) -> None:
    options = {"A": "Left half", "B": "Lower right quarter"}
    question = read_question(query, options)
    assert (question.asked, question.is_sure) == ("where", True)
    assert find_place(question.text, question.claim, options, damaged_on_the_left).answer == letter


def test_where_nothing_is_found_no_place_is_named() -> None:
    clean = MeasuredImage({each: Finding(0.0, "", "") for each in DETECTABLE}, 5.0)
    options = {"A": "Left half", "B": "Right half"}
    question = read_question("Whereabouts is the blur?", options)
    assert find_place(question.text, question.claim, options, lambda name: clean).answer is None


@pytest.mark.parametrize(
    ("least", "answer"),
    [(1.0, "Everywhere, no part stands out"), (0.4, None)],
)
def test_everywhere_is_only_where_every_part_shows_it(least: float, answer: str | None) -> None:
    def look(name: str) -> MeasuredImage:
        severity = least + 0.3 if "left" in name else least
        return MeasuredImage({each: Finding(severity, "", "") for each in DETECTABLE}, 3.0)

    query = "Which half is noisier?"
    assert find_place(query, read_question(query, {}).claim, {}, look).answer == answer
