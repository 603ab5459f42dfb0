"""Places in an image are named as people name them."""

import pytest

from agenticiqa.programs.images.places import name_of_place
from agenticiqa.programs.images.regions import place_in_frame
from agenticiqa.programs.tools.planted import NAMED, named_box

SIZE = (640, 480)


@pytest.mark.parametrize("name", ["left half", "bottom half", "top third", "top right quarter", "bottom left corner"])
def test_a_place_that_a_question_may_name_has_that_name(name):
    box = place_in_frame(name, SIZE)
    assert box is not None
    assert name_of_place(box, SIZE) == name


def test_a_box_that_fits_no_place_exactly_has_the_name_of_the_nearest():
    assert name_of_place((200, 150, 430, 330), SIZE) == "center"
    assert name_of_place((0, 0, 300, 480), SIZE) == "left half"
    assert name_of_place((0, 0, 640, 480), SIZE) == "whole image"


def test_ninths_quarters_and_halves_have_names_of_their_own():
    assert len({name_of_place(named_box(place, SIZE), SIZE) for place in NAMED}) == len(NAMED)
