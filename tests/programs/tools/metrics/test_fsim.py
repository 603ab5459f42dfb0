"""FSIM against the official values, and where its formula has corners."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.fsim import fsim
from agenticiqa.programs.tools.numerics.pixels import gray_levels
from support.distortion_levels import desaturate, noise, scene
from support.golden import golden_pairs

PHOTO = scene()


def test_fsim_equals_the_official_values(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        assert fsim(pair.image, pair.reference) == pytest.approx(pair.values["fsim"], abs=1e-4), pair.name


def test_fsim_sees_color() -> None:
    as_gray = gray_levels(PHOTO)[..., None].repeat(3, axis=2)
    assert fsim(as_gray, PHOTO) < 1 - 1e-3
    assert fsim(desaturate(5, PHOTO), PHOTO) < fsim(desaturate(2, PHOTO), PHOTO)


def test_fsim_stays_a_number_when_hues_are_opposite() -> None:
    red, cyan = (np.full((64, 64, 3), color, np.uint8) for color in ((255, 0, 0), (0, 255, 255)))
    assert 0 < fsim(red, cyan) < 1


def test_fsim_reduces_large_images_so_that_fine_noise_counts_less() -> None:
    small, large = scene(192, 192), scene(384, 384)
    assert fsim(noise(3, large), large) > fsim(noise(3, small), small)
