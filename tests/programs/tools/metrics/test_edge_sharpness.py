"""EDGE-SHARPNESS does not depend on contrast."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness
from support.distortion_levels import AT_LEVEL
from support.images import coffee


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return coffee()


def test_edge_sharpness_does_not_depend_on_contrast(photo):
    assert edge_sharpness(AT_LEVEL["low_contrast"](3, photo)) == pytest.approx(edge_sharpness(photo), rel=0.05)
