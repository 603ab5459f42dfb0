"""The toolbox: every tool describes its metric correctly, every curve is monotone and has a source."""

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, run_tool, toolbox
from agenticiqa.programs.tools.catalog import listing
from agenticiqa.programs.tools.tool_curves import ToolCurve, read_tool_curves, usable
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS
from support.distortion_levels import scene
from support.images import loaded

REFUSED = ["ckdn", "tres", "wadiqam_nr", "arniqa", "BRISQUE"]


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_all_its_fields(name):
    tool = TOOLS[name]
    low, high = tool.raw_range
    assert tool.name == name
    assert low < high
    assert tool.measures in {OVERALL, *DISTORTIONS}
    assert tool.description.endswith(".")
    assert tool.source
    assert tool.cost_ms > 0


@pytest.mark.parametrize("name", TOOLS)
def test_the_smallest_side_is_what_the_metric_needs(name):
    tool = TOOLS[name]
    image = scene(tool.smallest, tool.smallest + 3)
    pair = (image, image) if tool.kind == "FR" else (image,)
    assert np.isfinite(tool.measure(*pair))
    if tool.smallest > 1:
        smaller = tuple(pixels[1:, 1:] for pixels in pair)
        with pytest.raises(ToolError):
            tool.measure(*smaller)


@pytest.mark.parametrize("name", TOOLS)
def test_the_default_curve_is_monotone_in_the_metrics_direction(name):
    tool = toolbox()[name]
    low, high = (tool.curve(end) for end in tool.raw_range)
    assert (high > low) == tool.higher_is_better
    assert tool.curve.raw_range == tool.raw_range
    assert "n=" in tool.curve.fitted_on


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.kind == "FR"])
def test_an_undistorted_image_is_excellent_and_every_score_lies_on_the_scale(name):
    tool, image = toolbox()[name], loaded(scene(192, 256))
    pristine = run_tool(tool, image, image, region="Global", distortion=OVERALL)
    wrecked = run_tool(tool, loaded(np.zeros_like(image.pixels)), image, region="Global", distortion=OVERALL)
    assert 4.45 <= pristine.calibrated <= 5
    assert 1 <= wrecked.calibrated < 3


def test_non_monotone_curves_of_table_5_are_refused_by_name():
    curves = read_tool_curves("table5")
    assert len(curves) == 24
    assert [name for name, curve in curves.items() if not curve.is_monotone()] == REFUSED
    for name in REFUSED:
        with pytest.raises(ToolError, match=rf"{name} is not monotone"):
            usable(name, "table5")
    assert "BRISQUE" not in toolbox("table5")
    assert curves["FSIM"](0.5) == pytest.approx(1.11, abs=0.005)
    assert curves["FSIM"](1.0) == pytest.approx(4.55, abs=0.005)


def test_a_curve_clips_to_the_scale_and_to_its_range():
    curve = ToolCurve((0, 0, 0, 10, -5), (0, 1), "a line")
    assert curve(0) == 1
    assert curve(1) == 5
    assert curve(7) == curve(1)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"tools: {SSIM: {betas: [1, 2]}}", "are invalid"), (b"\xff\xfe\x00\x81", r"cannot be read: [^\n]+$")],
)
def test_an_invalid_file_of_curves_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "curves.yaml"
    path.write_bytes(content)
    with pytest.raises(ToolError, match=rf"^tool curves .*curves\.yaml' {words}"):
        read_tool_curves(str(path))


def test_an_unknown_set_of_curves_is_reported_with_the_known_ones():
    with pytest.raises(ToolError, match=r"no tool curves 'mine'; .*default, table5"):
        read_tool_curves("mine")


def test_the_listing_has_the_status_of_every_tool():
    rows = {row["name"]: row for row in listing(toolbox("table5"), "table5")}
    assert rows["SSIM"]["status"] == "ready"
    assert "no curve" in rows["PSNR"]["status"]
    assert "not monotone" in rows["BRISQUE"]["status"]
    assert set(rows) == set(TOOLS)
