"""NIQE against its authors' release and the package that its parameters come from."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.niqe import niqe, niqe_map
from support.distortion_levels import AT_LEVEL, scene
from support.golden import golden_pairs


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return scene(288, 384, seed=7)


def test_niqe_agrees_with_the_authors_release(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        tolerance = 1e-9 if pair.name == "I04.png" else 0.04  # nothing is flat in I04
        assert niqe(pair.image) == pytest.approx(pair.values["niqe"], abs=tolerance), pair.name


def test_niqe_leaves_flat_blocks_out(photo: np.ndarray) -> None:
    sky = np.full((96, 384, 3), 200, np.uint8)
    # Only the few rows beside the seam see the sky; flat blocks, were they counted, would have no value at all.
    assert niqe(np.vstack([photo, sky])) == pytest.approx(niqe(photo), rel=0.1)


def test_the_map_of_niqe_has_a_value_per_block_that_begins_and_shows_where_the_noise_is(photo: np.ndarray) -> None:
    image = np.pad(photo, ((0, 20), (0, 90), (0, 0)), mode="reflect")
    image[:96, :96] = AT_LEVEL["noise"](5, image[:96, :96])
    damage = niqe_map(image)
    assert damage.shape == (4, 5)
    assert damage[0, 0] == damage.max() > 0
    assert (damage[:, 1:] < damage[0, 0] / 2).all()
    assert not niqe_map(np.full((200, 200, 3), 90, np.uint8)).any()
