"""BRISQUE against its authors' release and the package that its parameters come from."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.brisque import brisque
from support.distortion_levels import AT_LEVEL, scene
from support.golden import golden_pairs


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return scene(288, 384, seed=7)


def test_brisque_agrees_with_the_authors_release(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        tolerance = 0.01 if pair.name in ("I03.png", "I04.png", "I06.png") else 2.5  # in these hardly anything is flat
        assert brisque(pair.image) == pytest.approx(pair.values["brisque"], abs=tolerance), pair.name


@pytest.mark.parametrize("distortion", ["blur", "noise"])
def test_brisque_grows_with_every_step_of_blur_and_noise(photo: np.ndarray, distortion: str) -> None:
    values = [brisque(AT_LEVEL[distortion](level, photo)) for level in range(6)]
    assert values == sorted(values)
