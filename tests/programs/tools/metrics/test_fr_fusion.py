import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS, fr_fusion, fr_fusion_map, full_reference_quality
from support.distortion_levels import AT_LEVEL, scene

PHOTO = scene()
PERFECT = {name: member.best for name, member in MEMBERS.items()}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_curve_falls_from_5_through_3_at_its_middle_towards_1(name):
    member = MEMBERS[name]
    sign = -1 if member.tool.higher_is_better else 1
    scores = [member.quality(member.best + sign * far * member.middle) for far in (-0.5, 0, 0.5, 1, 2, 1000)]
    assert scores[:2] == [5, 5]
    assert scores[3] == pytest.approx(3)
    assert scores[-1] == pytest.approx(1, abs=0.01)
    assert all(np.diff(scores[1:]) < 0)


def test_the_verdict_is_the_mean_of_the_members():
    raws = {"HaarPSI": 0.6, "MDSI": 0.3, "VIF": 0.5}
    expected = np.mean([MEMBERS[name].quality(raw) for name, raw in raws.items()])
    assert full_reference_quality({**raws, "PSNR": 20.0}) == pytest.approx(expected)
    measured = {name: member.tool.measure(AT_LEVEL["jpeg"](2, PHOTO), PHOTO) for name, member in MEMBERS.items()}
    assert fr_fusion(AT_LEVEL["jpeg"](2, PHOTO), PHOTO) == full_reference_quality(measured)


def test_an_equal_image_gets_exactly_5():
    assert full_reference_quality(PERFECT) == 5
    assert fr_fusion(PHOTO, PHOTO.copy()) == pytest.approx(5, abs=1e-12)


def test_members_may_be_missing_but_not_all_of_them():
    assert full_reference_quality({"VIF": 1.0}) == 5
    with pytest.raises(ToolError, match="at least one of HaarPSI, MDSI, VIF"):
        full_reference_quality({"PSNR": 30.0})


def test_a_small_image_is_judged_by_the_members_that_it_is_large_enough_for():
    small = scene(40, 50)
    blurred = AT_LEVEL["blur"](3, small)
    raws = {name: MEMBERS[name].tool.measure(blurred, small) for name in ("HaarPSI", "MDSI")}
    assert fr_fusion(blurred, small) == full_reference_quality(raws)


def test_the_map_has_the_images_shape_and_the_lost_quality_as_its_mean():
    image, reference = AT_LEVEL["blur"](3, scene(301, 403)), scene(301, 403)
    damage = fr_fusion_map(image, reference)
    assert damage.shape == (301, 403)
    assert damage.mean() == pytest.approx((5 - fr_fusion(image, reference)) / 4, rel=0.02)
