"""Sharpening makes edges steep and leaves halos."""

import numpy as np
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.tools.statistics.by_name import statistic
from support.images import as_gray


def sharpened(rgb: np.ndarray, amount: float) -> np.ndarray:
    values = rgb.astype(float)
    return np.clip(values + amount * (values - gaussian_filter(values, (1.5, 1.5, 0))), 0, 255).astype(np.uint8)


def test_sharpening_makes_edges_steep_and_leaves_halos():
    rows, columns = np.mgrid[:200, :200]
    disc = gaussian_filter(np.where(np.hypot(rows - 100, columns - 100) < 60, 160.0, 90.0), 1.2)
    plain, sharp = as_gray(disc), sharpened(as_gray(disc), 3)
    assert statistic("overshoot", plain) < 0.02
    assert statistic("overshoot", sharp) > 0.3
    assert statistic("edge_sharpness", sharp) > statistic("edge_sharpness", plain)
