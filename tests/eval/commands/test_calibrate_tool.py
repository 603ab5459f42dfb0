"""``agenticiqa calibrate tool``: a file of curves with its picture; unusable tools are refused, the others fitted."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.tools.tool_curves import read_tool_curves, usable
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, scene

pytestmark = pytest.mark.slow

Row = Mapping[str, object]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Labels of 24 blurred synthetic scenes with references; the MOS decreases with the level, on 0..100."""
    rows: list[Row] = []
    for seed in range(4):
        reference = tmp_path / f"scene{seed}.png"
        Image.fromarray(scene(96, 128, seed)).save(reference)
        for level in ALL_LEVELS:
            image = tmp_path / f"scene{seed}_{level}.png"
            Image.fromarray(AT_LEVEL["blur"](level, scene(96, 128, seed))).save(image)
            rows.append({"image": image.name, "reference": reference.name, "mos": 97 - 18 * level - seed})
    return written(tmp_path / "labels.csv", rows)


def written(path: Path, rows: Sequence[Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "reference", "mos"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def changed(labels: Path, change: Callable[[Row], Row]) -> Path:
    """Write the labels with every row changed into another file, and return it."""
    with labels.open() as file:
        return written(labels.with_name("changed.csv"), [{**row, **change(row)} for row in csv.DictReader(file)])


def test_a_file_of_curves_and_its_picture_are_written_and_used_in_a_configuration(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.yaml"
    arguments = ["calibrate", "tool", str(labels), "--tool", "SSIM", "MS-SSIM", "--name", "blurred", "--out", str(out)]
    assert main(arguments) == 1, "the images are too small for MS-SSIM"
    curve, base, written = usable("SSIM", str(out)), read_tool_curves("default"), read_tool_curves(str(out))
    assert curve(1.0) == pytest.approx(5, abs=1e-4)
    assert curve(0.3) < 2.5
    for part in ("blurred, n=24", "residual 0.", "SRCC 0.9"):
        assert part in curve.fitted_on
    assert {**written, "SSIM": base["SSIM"]} == base, "other curves are copied with their provenance"
    with Image.open(tmp_path / "mine.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > picture.height > 300, "a panel for each tool, also for a refused one"
    printed = capsys.readouterr()
    assert "MOS 0..100 are mapped to 1..5" in printed.err
    assert "MS-SSIM: 24 images failed, first: " in printed.err
    assert "at least 176 pixels, got 128 x 96" in printed.err
    assert "MS-SSIM: a curve needs at least 20 labeled images that the tool can measure, got 0" in printed.err
    for part in ("SSIM: 24 images, SRCC 0.9", "(old curve: ", f"tool_curves: {out}"):
        assert part in printed.out
    program = AgenticIQA.from_config(Config(tool_curves=str(out)))
    assert program.executor.toolbox["SSIM"].curve == curve


def test_existing_files_are_replaced_only_with_force(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plot = tmp_path / "mine.yaml", tmp_path / "mine.png"
    arguments = ["calibrate", "tool", str(labels), "--tool", "PSNR", "--out", str(out)]
    for present in (out, plot):
        present.write_text("precious")
        assert main(arguments) == 2
        assert f"{present} already exists" in capsys.readouterr().err
        assert present.read_text() == "precious"
        present.unlink()
    assert main([*arguments[:-1], str(plot), "--force"]) == 2
    assert "name a .yaml file" in capsys.readouterr().err
    out.write_text("precious")
    assert main([*arguments, "--force"]) == 0
    assert "PSNR" in yaml.safe_load(out.read_text())["tools"]


def test_scores_that_fall_with_quality_are_refused_and_no_file_is_written(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upside_down = changed(labels, lambda row: {"mos": 100 - float(str(row["mos"]))})
    out = tmp_path / "mine.yaml"
    arguments = ["calibrate", "tool", str(upside_down), "--tool", "PSNR", "--out", str(out)]
    assert main(arguments) == 2
    assert "low scores seem to mean good quality: SRCC between the scores and SSIM" in capsys.readouterr().err
    assert main([*arguments, "--no-lower-is-better"]) == 1
    printed = capsys.readouterr()
    assert "PSNR: higher values of this tool mean better quality, but the labels show the opposite" in printed.err
    assert "no file was written" in printed.out
    assert not out.exists()
    assert (tmp_path / "mine.png").exists(), "the points are plotted in any case"


def test_labels_in_another_form_and_mirrored_ones_give_the_same_curve(labels: Path, tmp_path: Path) -> None:
    with labels.open() as file:
        rows = list(csv.DictReader(file))
    lines = [{"img_path": row["image"], "dmos": 100 - float(row["mos"]), "reference": row["reference"]} for row in rows]
    (tmp_path / "dmos.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "labels.tsv").write_text(labels.read_text().replace(",", "\t"))
    given = {"a": [labels], "b": [tmp_path / "labels.tsv"], "c": [tmp_path / "dmos.jsonl", "--lower-is-better"]}
    for name, data in given.items():
        out = ["--tool", "GMSD", "--name", "scenes", "--out", str(tmp_path / f"{name}.yaml")]
        assert main(["calibrate", "tool", *map(str, data), *out]) == 0
    first, second, third = ((tmp_path / f"{name}.yaml").read_text() for name in "abc")
    assert first == second == third
