"""Areas of boxes."""

import pytest

from agenticiqa.eval.research.planted import named_box
from agenticiqa.eval.research.random_damage import NAMED
from agenticiqa.programs.images.boxes import name_of_place, overlap
from agenticiqa.programs.images.regions import place_in_frame


def test_overlap_is_intersection_over_union():
    assert overlap((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert overlap((0, 0, 10, 10), (0, 0, 20, 10)) == 0.5


SIZE = (640, 480)


@pytest.mark.parametrize("name", ["left half", "bottom half", "top third", "top right quarter", "bottom left corner"])
def test_places_of_questions_are_named_like_in_the_question(name):
    box = place_in_frame(name, SIZE)
    assert box is not None
    assert name_of_place(box, SIZE) == name


def test_a_box_that_fits_no_place_exactly_has_the_name_of_the_nearest():
    assert name_of_place((200, 150, 430, 330), SIZE) == "center"
    assert name_of_place((0, 0, 300, 480), SIZE) == "left half"
    assert name_of_place((0, 0, 640, 480), SIZE) == "whole image"


def test_ninths_quarters_and_halves_have_different_names():
    assert len({name_of_place(named_box(place, SIZE), SIZE) for place in NAMED}) == len(NAMED)
