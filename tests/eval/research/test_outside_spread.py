"""The study of errors on images outside of the training: which truths its cases have, and what it counts."""

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.eval.research.outside_spread import PARTS, pair, part_cases, report, spread_for
from agenticiqa.programs.tools.outside_training import LEAST_SPREAD

pytestmark = pytest.mark.slow


def test_a_clean_picture_is_excellent_and_a_damaged_one_is_not():
    (_, clean, best), (_, damaged, worse) = pair("photo", skimage.data.chelsea()[:128, :160].copy(), "chelsea")
    assert best == 5
    assert 1 <= worse < 4.8
    assert clean.shape == damaged.shape
    assert not np.array_equal(clean, damaged)


def test_parts_of_a_photo_have_its_opinion(tmp_path):
    Image.fromarray(skimage.data.astronaut()).save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("image,mos\na.png,2\nb.png,4.5\n")
    Image.fromarray(skimage.data.coffee()).save(tmp_path / "b.png")
    cases = list(part_cases(str(tmp_path / "labels.csv"), 2))
    assert {truth for *_, truth in cases} == {2, 4.5}
    sizes = {group: pixels.shape[:2] for group, pixels, _ in cases}
    assert {name: sizes[name] for name in PARTS if name in sizes} == {n: s for n, s in PARTS.items() if n in sizes}
    assert {"gray", "8 x 8", "40 x 400"} <= set(sizes)


def test_errors_are_counted_by_group():
    rows = report([("8 x 8", 3.0, 5.0), ("8 x 8", 3.0, 1.0), ("whole", 2.0, 2.5)])
    assert rows[2] == f"| 8 x 8 | 2 | +0.00 | 2.00 | {LEAST_SPREAD['too small']} | 100% |"
    assert rows[3] == "| whole | 1 | -0.50 | 0.50 |  |  |"
    assert spread_for("40 x 400") == LEAST_SPREAD["thin"]
    assert spread_for("96 x 96") is None


@pytest.mark.parametrize("reason", LEAST_SPREAD)
def test_every_reason_has_a_group_or_a_part(reason):
    assert spread_for(reason) == LEAST_SPREAD[reason]
