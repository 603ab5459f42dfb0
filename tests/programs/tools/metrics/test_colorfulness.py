"""COLORFULNESS is its authors' formula."""

import numpy as np
import pytest

from agenticiqa.programs.tools.metrics.colorfulness import colorfulness
from support.images import as_gray


def test_colorfulness_is_hasler_and_suesstrunks_formula():
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, :32], halves[:, 32:] = (200, 100, 50), (100, 100, 100)
    # red minus green is 100 and 0, yellow minus blue 100 and 0: spread 50 and mean 50 in both.
    assert colorfulness(halves) == pytest.approx(np.hypot(50, 50) * 1.3)
    assert colorfulness(as_gray(np.full((64, 64), 90.0))) == 0
