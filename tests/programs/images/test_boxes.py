"""Areas of boxes."""

from agenticiqa.programs.images.boxes import overlap


def test_overlap_is_intersection_over_union():
    assert overlap((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert overlap((0, 0, 10, 10), (0, 0, 20, 10)) == 0.5
