"""Curves fitted on labels: monotone whatever the data, honest about their origin, refused when they cannot be."""

import csv

import numpy as np
import pytest
import yaml
from PIL import Image

from agenticiqa.eval import calibrate, tool_table
from agenticiqa.eval.calibrate import fit_calibration
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.calibration import usable
from support.ladders import LADDERS, LEVELS, scene


@pytest.fixture
def labels(tmp_path):
    """24 blurred made-up scenes with their references; the mos falls with the level, on 0..100."""
    rows = []
    for seed in range(4):
        reference = tmp_path / f"scene{seed}.png"
        Image.fromarray(scene(96, 128, seed)).save(reference)
        for level in LEVELS:
            image = tmp_path / f"scene{seed}_{level}.png"
            Image.fromarray(LADDERS["blur"](level, scene(96, 128, seed))).save(image)
            rows.append({"image": image.name, "reference": reference.name, "mos": 100 - 20 * level})
    path = tmp_path / "labels.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "reference", "mos"])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("sign", [1, -1])
def test_a_fitted_curve_is_monotone_and_close_to_the_data(sign):
    rng = np.random.default_rng(0)
    raw = rng.uniform(0, 1, 200)
    quality = np.clip(3 + sign * 3 * (raw - 0.5) + rng.normal(0, 0.1, 200), 1, 5)
    curve = fit_calibration(raw, quality, (0, 1), "made up")
    assert curve.is_monotone()
    assert np.mean(np.abs([curve(x) - y for x, y in zip(raw, quality, strict=True)])) < 0.15
    assert "made up, n=200" in curve.fitted_on


def test_noise_gives_a_curve_that_is_still_monotone():
    rng = np.random.default_rng(1)
    assert fit_calibration(rng.uniform(0, 1, 50), rng.uniform(1, 5, 50), (0, 1), "noise").is_monotone()


def test_too_few_points_and_values_that_do_not_vary_are_refused():
    with pytest.raises(ToolError, match="at least 20 points"):
        fit_calibration(range(19), range(19), (0, 19), "few")
    with pytest.raises(ToolError, match="different values"):
        fit_calibration([1.0] * 30, range(30), (0, 1), "flat")
    with pytest.raises(ToolError, match="all the same"):
        fit_calibration(range(30), [3.0] * 30, (0, 30), "flat")


def test_a_profile_is_written_updated_and_usable(labels, tmp_path, capsys):
    out = tmp_path / "mine.yaml"
    arguments = [str(labels), "--mos-range", "0", "100", "--name", "blurred scenes", "--out", str(out)]
    assert calibrate.main([*arguments, "--tool", "SSIM"]) == 0
    assert calibrate.main([*arguments, "--tool", "GMSD"]) == 0
    assert list(yaml.safe_load(out.read_text())["tools"]) == ["SSIM", "GMSD"]
    curve = usable("SSIM", str(out))
    assert curve(1.0) > 4 > curve(0.3)
    assert "blurred scenes, n=28" in curve.fitted_on, "24 images and 4 references"


def test_a_full_reference_metric_needs_references(labels, tmp_path, capsys):
    alone = tmp_path / "alone.csv"
    alone.write_text("image,mos\nscene0.png,3\n")
    arguments = ["--mos-range", "0", "100", "--name", "x", "--out", str(tmp_path / "x.yaml"), "--tool", "SSIM"]
    assert calibrate.main([str(alone), *arguments]) == 2
    assert "references" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_metric_that_applies(labels, capsys, monkeypatch):
    few = {name: tool_table.CARDS[name] for name in ("SSIM", "GMSD", "BLUR-EXTENT", "NIQE")}
    monkeypatch.setattr(tool_table, "CARDS", few)
    assert tool_table.main([str(labels)]) == 0
    rows = {line.split(" | ")[0].strip("| "): line for line in capsys.readouterr().out.splitlines()[2:]}
    assert list(rows) == list(few)
    assert "| 24 | 0 | 0.9" in rows["GMSD"], "the sign is turned, so that agreement is positive"
    assert "| 0 | 24 | - (" in rows["NIQE"], "too small for it: refused and counted, not imputed"
