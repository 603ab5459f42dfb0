"""EDGE-SHARPNESS does not depend on contrast."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness
from support.images import coffee
from support.ladders import LADDERS


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_edge_sharpness_does_not_depend_on_contrast(photo):
    assert edge_sharpness(LADDERS["low_contrast"](3, photo)) == pytest.approx(edge_sharpness(photo), rel=0.05)
