"""MDSI against piq's values, and where its formula has corners."""

from pathlib import Path

import pytest

from agenticiqa.programs.tools.metrics.mdsi import mdsi
from support.distortion_levels import desaturate, scene
from support.golden import golden_pairs

PHOTO = scene()


# What piq 0.8.0 gives for the golden pairs.
PIQ = {"I03.png": 0.486269, "I04.png": 0.397198, "I06.png": 0.201322, "I08.png": 0.403833, "I19.png": 0.455812}


def test_mdsi_equals_what_piq_gives(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert mdsi(pair.image, pair.reference) == pytest.approx(PIQ[pair.name], abs=1e-5), pair.name


def test_mdsi_sees_color_and_stays_a_number_when_hues_are_opposite() -> None:
    assert mdsi(desaturate(5, PHOTO), PHOTO) > mdsi(desaturate(2, PHOTO), PHOTO) > 0
    red, cyan = PHOTO.copy(), PHOTO.copy()
    red[:20], cyan[:20] = (255, 0, 0), (0, 255, 255)
    assert 0 < mdsi(red, cyan) < 1
