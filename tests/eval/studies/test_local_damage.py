"""The study of planted damage: what is planted is the same each time, and hits are counted where they are."""

import pytest
from PIL import Image

from agenticiqa.eval.studies.local_damage import outcomes, plan, pointing_table, table
from agenticiqa.programs.tools.planted import PLANTED
from support.images import coffee

pytestmark = pytest.mark.slow


def test_every_kind_is_planted_in_turn_and_the_same_each_time():
    size = (320, 240)
    drawn = [plan(number, "a.png", size) for number in range(len(PLANTED))]
    assert [each[0] for each in drawn] == [*PLANTED]
    assert drawn == [plan(number, "a.png", size) for number in range(len(PLANTED))]


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
