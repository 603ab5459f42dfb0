"""The study of planted damage: what is planted is the same each time, and hits are counted where they are."""

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.local_damage import opened, outcomes, pointing_table, table
from agenticiqa.programs.tools.planted import PLANTED, plant
from support.images import coffee

pytestmark = pytest.mark.slow


def test_the_tables_have_every_kind_and_map(tmp_path):
    path = tmp_path / "coffee.png"
    Image.fromarray(coffee()).save(path)
    found = list(outcomes([path], 2, with_maps=True))
    lines = table(found)
    assert any(line.startswith(f"| {PLANTED[0]} | 1 |") for line in lines)
    assert lines[2].startswith("| all kinds | 2 |")
    maps = pointing_table(found)
    assert any(line.startswith("| the detector | 2 |") for line in maps)
    assert any(line.startswith("| SSIM | 2 |") for line in maps)


def test_images_are_saved_and_borders_made_soft_as_asked(tmp_path):
    assert list(opened(coffee(), None).pixels.ravel()) == list(coffee().ravel())
    coarse, fine = (np.abs(opened(coffee(), quality).pixels - coffee().astype(int)).mean() for quality in (30, 95))
    assert coarse > 2 * fine > 0
    box = (80, 60, 240, 180)
    sharp, soft = (plant(coffee(), "darken", 3, box, 1, feather=width) for width in (0, 15))
    assert sharp.box == soft.box == box
    assert set(sharp.share[120].tolist()) == {0, 1}
    partly = np.flatnonzero((soft.share[120] > 0.01) & (soft.share[120] < 0.99))
    assert partly.min() == pytest.approx(72, abs=2)
    assert len(partly) == pytest.approx(28, abs=2)
