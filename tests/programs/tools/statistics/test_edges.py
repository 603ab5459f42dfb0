"""Sharpening makes edges steep and leaves halos."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.special import erf

from agenticiqa.programs.tools.features.by_name import STATISTICS
from support.images import as_gray


def sharpened(rgb: np.ndarray, amount: float) -> np.ndarray:
    values = rgb.astype(float)
    return np.clip(values + amount * (values - gaussian_filter(values, (1.5, 1.5, 0))), 0, 255).astype(np.uint8)


def test_sharpening_makes_edges_steep_and_leaves_halos():
    rows, columns = np.mgrid[:200, :200]
    disc = gaussian_filter(np.where(np.hypot(rows - 100, columns - 100) < 60, 160.0, 90.0), 1.2)
    plain, sharp = as_gray(disc), sharpened(as_gray(disc), 3)
    assert STATISTICS["overshoot"](plain) < 0.02
    assert STATISTICS["overshoot"](sharp) > 0.3
    assert STATISTICS["edge_sharpness"](sharp) > STATISTICS["edge_sharpness"](plain)


def with_halo(across: np.ndarray) -> np.ndarray:
    """Return a step of 100 gray levels at 0, with a halo on both sides that is higher on the bright one."""
    bright, dark = (np.exp(-((across - at) ** 2) / (2 * 1.2**2)) for at in (2, -2))
    return 75 + 50 * erf(across / 1.2) + 40 * bright - 20 * dark


@pytest.mark.parametrize("degrees", range(0, 360, 15))
def test_overshoot_is_the_halos_share_of_the_edge_whatever_its_direction(degrees):
    """Values between the pixels are interpolated, which takes up to a tenth off the halo's peaks."""
    rows, columns = np.mgrid[:120, :120] - 59.5
    across = columns * np.cos(np.radians(degrees)) + rows * np.sin(np.radians(degrees))
    beyond = np.abs(with_halo(np.array([2.0, -2.0])) - with_halo(np.array([8.0, -8.0]))).sum() / 100
    assert 0.88 * beyond < STATISTICS["overshoot"](as_gray(with_halo(across))) < 0.96 * beyond
