"""The command that fits the shipped curves, to labels with end points and to distorted photos."""

import csv
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.eval.research import fit_tool_curves
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.tool_curves import read_tool_curves, usable
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, scene

pytestmark = pytest.mark.slow


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Four pristine photos, and beside them a table of 24 blurred copies with their references."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "reference", "mos"])
        for seed in range(4):
            Image.fromarray(scene(96, 128, seed)).save(folder / f"{seed}.png")
            for level in ALL_LEVELS:
                Image.fromarray(AT_LEVEL["blur"](level, scene(96, 128, seed))).save(tmp_path / f"{seed}_{level}.png")
                table.writerow([f"{seed}_{level}.png", f"photos/{seed}.png", 97 - 18 * level - seed])
    return folder


def test_full_reference_curves_have_end_points_and_other_curves_are_fitted_to_distorted_photos(
    photos: Path, tmp_path: Path
) -> None:
    first, out = tmp_path / "first.yaml", tmp_path / "new.yaml"
    labels = [str(tmp_path / "labels.csv"), "--mos-range", "0", "100", "--name", "blurred"]
    assert fit_tool_curves.main([*labels, "--tool", "SSIM", "--out", str(first)]) == 0
    command = [str(photos), "--tool", "NOISE-SIGMA", "BLOCKINESS", "--base", str(first), "--out", str(out)]
    assert fit_tool_curves.main(command) == 0
    ssim, noise, blocks = (usable(name, str(out)) for name in ("SSIM", "NOISE-SIGMA", "BLOCKINESS"))
    assert "blurred, with 4 undistorted references and their extreme distortions (gaussian_blur" in ssim.fitted_on
    assert ssim(1.0) == pytest.approx(5, abs=1e-4)
    assert noise(TOOLS["NOISE-SIGMA"].measure(AT_LEVEL["noise"](5, scene(96, 128, 9)))) <= 2 < 4.5 <= noise(0.0)
    assert "(jpeg)" in blocks.fitted_on, "other compression hardly changes its grid"
    assert read_tool_curves(str(out))["GMSD"] == read_tool_curves("default")["GMSD"]
    with Image.open(tmp_path / "new.png") as picture:
        assert picture.width > picture.height, "a panel for each tool"


def test_a_tool_that_cannot_be_fitted_keeps_its_curve(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.yaml"
    labels = [str(tmp_path / "labels.csv"), "--mos-range", "0", "100"]
    assert fit_tool_curves.main([*labels, "--tool", "SSIM", "MS-SSIM", "--out", str(out)]) == 1
    base = read_tool_curves("default")
    assert {**read_tool_curves(str(out)), "SSIM": base["SSIM"]} == base, "other curves are copied with their provenance"
    printed = capsys.readouterr()
    assert "at least 176 pixels, got 128 x 96" in printed.err
    assert "MS-SSIM: a curve needs at least 20 labeled images that the tool can measure, got" in printed.err
    assert f"tool_curves: {out}" in printed.out
    program = AgenticIQA.from_config(Config(tool_curves=str(out)))
    assert program.executor.toolbox["SSIM"].curve == usable("SSIM", str(out))


def test_scores_that_fall_with_quality_are_refused_and_no_file_is_written(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = [{**row, "mos": 100 - float(row["mos"])} for row in csv.DictReader(file)]
    with (tmp_path / "down.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    out = tmp_path / "mine.yaml"
    command = [str(tmp_path / "down.csv"), "--mos-range", "0", "100", "--tool", "PSNR", "--out", str(out)]
    assert fit_tool_curves.main(command) == 1
    printed = capsys.readouterr()
    assert "PSNR: higher values of this tool mean better quality, but the labels show the opposite" in printed.err
    assert "no file was written" in printed.out
    assert not out.exists()
    assert (tmp_path / "mine.png").exists(), "the points are plotted in any case"
