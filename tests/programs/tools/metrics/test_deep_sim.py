"""DEEP-SIM: 1 for equal images, falling with a distortion."""

import pytest

from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.metrics.deep_sim import deep_sim
from support.distortion_levels import scene


@pytest.fixture(scope="module")
def photo():
    return scene(256)


def test_deep_features_of_an_image_and_itself_are_the_same(photo):
    assert deep_sim(photo, photo) == 1


def test_deep_features_fall_apart_as_a_distortion_grows(photo):
    found = [deep_sim(distort(photo, "gaussian_blur", level), photo) for level in range(6)]
    assert found == sorted(found, reverse=True)
    assert found[5] < 0.9
