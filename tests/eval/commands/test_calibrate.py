"""``agenticiqa calibrate``: a profile with its plot; unusable tools are refused, and the others are fitted."""

import csv
import json
from dataclasses import replace

import pytest
import yaml
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.calibration import load_profile, usable
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, scene

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def order():
    """Restore the order of the tools, as monkeypatch appends the tools that it restores."""
    before = dict(TOOLS)
    yield
    TOOLS.clear()
    TOOLS.update(before)


@pytest.fixture
def labels(tmp_path):
    """Labels of 24 blurred synthetic scenes with references; the MOS decreases with the level, on 0..100."""
    rows = []
    for seed in range(4):
        reference = tmp_path / f"scene{seed}.png"
        Image.fromarray(scene(96, 128, seed)).save(reference)
        for level in ALL_LEVELS:
            image = tmp_path / f"scene{seed}_{level}.png"
            Image.fromarray(AT_LEVEL["blur"](level, scene(96, 128, seed))).save(image)
            rows.append({"image": image.name, "reference": reference.name, "mos": 97 - 18 * level - seed})
    return written(tmp_path / "labels.csv", rows)


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "reference", "mos"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def changed(labels, change):
    """Write the labels with every row changed into another file, and return it."""
    with labels.open() as file:
        return written(labels.with_name("changed.csv"), [{**row, **change(row)} for row in csv.DictReader(file)])


def counted(monkeypatch, name, stop_at=None):
    """Count the calls of a tool, and simulate Ctrl-C at call number ``stop_at``."""
    calls = []

    def measure(*pixels):
        calls.append(pixels)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return original(*pixels)

    original = TOOLS[name].measure
    monkeypatch.setitem(TOOLS, name, replace(TOOLS[name], measure=measure))
    return calls


def test_a_profile_and_its_plot_are_written_and_used_in_a_configuration(labels, tmp_path, capsys):
    out = tmp_path / "mine.yaml"
    arguments = ["calibrate", str(labels), "--tool", "SSIM", "GMSD", "--name", "blurred scenes", "--out", str(out)]
    assert main(arguments) == 0
    curve = usable("SSIM", str(out))
    assert curve(1.0) == pytest.approx(5, abs=1e-4)
    assert curve(0.3) < 2.5
    for part in ("blurred scenes", "n=24", "4 undistorted references", "residual 0.", "SRCC 0.9", "20"):
        assert part in curve.fitted_on
    base = load_profile("default")
    assert {name: value for name, value in load_profile(str(out)).items() if name not in ("SSIM", "GMSD")} == {
        name: value for name, value in base.items() if name not in ("SSIM", "GMSD")
    }, "other curves are copied with their provenance"
    with Image.open(tmp_path / "mine.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 300
    printed = capsys.readouterr()
    assert "MOS 0..100 are mapped to 1..5" in printed.err
    for part in ("SSIM", "GMSD", "24", "higher is better", "lower is better", f"calibration: {out}"):
        assert part in printed.out
    program = AgenticIQA.from_config(Config(calibration=str(out)))
    assert program.executor.toolbox["SSIM"].calibration == curve


def test_without_named_tools_all_that_apply_are_fitted_and_refusals_reported(labels, tmp_path, capsys, monkeypatch):
    for name in [name for name in TOOLS if name not in ("PSNR", "GMSD", "MS-SSIM", "NIQE")]:
        monkeypatch.delitem(TOOLS, name)
    out = tmp_path / "mine.yaml"
    assert main(["calibrate", str(labels), "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert "MS-SSIM: a curve needs at least 20 labeled images that the tool can measure, got 0" in err
    assert "at least 176 pixels, got 128 x 96" in err, "with the reason"
    assert "NIQE" not in err, "no-reference tools are not fitted if there are references"
    base, profile = load_profile("default"), load_profile(str(out))
    assert profile["MS-SSIM"] == base["MS-SSIM"]
    assert all(profile[name].fitted_on != base[name].fitted_on for name in ("PSNR", "GMSD"))


def test_existing_files_are_replaced_only_with_force(labels, tmp_path, capsys):
    out = tmp_path / "mine.yaml"
    out.write_text("precious")
    arguments = ["calibrate", str(labels), "--tool", "PSNR", "--out", str(out)]
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert main([*arguments, "--force"]) == 0
    assert "PSNR" in yaml.safe_load(out.read_text())["tools"]
    fresh = ["calibrate", str(labels), "--tool", "PSNR", "--out", str(tmp_path / "new.yaml")]
    assert main([*fresh, "--plot", str(tmp_path / "mine.png")]) == 2, "an existing plot is not replaced either"


def test_ctrl_c_loses_nothing_that_was_measured(labels, tmp_path, capsys, monkeypatch):
    arguments = ["calibrate", str(labels), "--tool", "PSNR", "--out", str(tmp_path / "mine.yaml")]
    with monkeypatch.context() as patch:
        calls = counted(patch, "PSNR", stop_at=12)
        assert main(arguments) == 130
        assert "run the same command again to continue" in capsys.readouterr().err
    assert not (tmp_path / "mine.yaml").exists()
    kept = (tmp_path / "mine.raw.jsonl").read_text().splitlines()
    assert len(kept) == 10 == len(calls) - 2, "without the first call, which tests the tool, and the interrupted one"
    calls = counted(monkeypatch, "PSNR")
    assert main(arguments) == 0
    total = len((tmp_path / "mine.raw.jsonl").read_text().splitlines())
    assert len(calls) - 1 == total - 10
    again = len(calls)
    assert main([*arguments, "--force", "--mos-range", "-10", "110"]) == 0
    assert len(calls) == again + 1, "another fit of the same images repeats no measurement"


def test_a_changed_tool_is_measured_again(labels, tmp_path, monkeypatch):
    arguments = ["calibrate", str(labels), "--tool", "PSNR", "--out", str(tmp_path / "mine.yaml"), "--force"]
    assert main(arguments) == 0
    before = usable("PSNR", str(tmp_path / "mine.yaml"))
    measure = TOOLS["PSNR"].measure
    monkeypatch.setitem(TOOLS, "PSNR", replace(TOOLS["PSNR"], measure=lambda *pair: measure(*pair) - 5))
    assert main(arguments) == 0
    assert usable("PSNR", str(tmp_path / "mine.yaml")).betas != before.betas


def test_scores_that_fall_with_quality_are_refused_and_no_profile_is_written(labels, tmp_path, capsys):
    upside_down = changed(labels, lambda row: {"mos": 100 - float(row["mos"])})
    out = tmp_path / "mine.yaml"
    arguments = ["calibrate", str(upside_down), "--tool", "PSNR", "--out", str(out)]
    assert main(arguments) == 2
    assert "low scores seem to mean good quality: SRCC between the scores and SSIM" in capsys.readouterr().err
    assert main([*arguments, "--no-lower-is-better"]) == 1
    printed = capsys.readouterr()
    assert "PSNR: higher values of this tool mean better quality, but the labels show the opposite" in printed.err
    assert "no profile was written" in printed.out
    assert not out.exists()
    assert (tmp_path / "mine.png").exists(), "the points are plotted in any case"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{labels}", "--tool", "LPIPS"], "unknown tool 'LPIPS'"),
        (["{labels}", "--base", "nothing"], "no calibration profile 'nothing'"),
        (["{labels}", "--split", "test"], "no row has split 'test'"),
        (["{labels}", "--mos-range", "5", "1"], "give the lower end first"),
        (["{labels}", "{labels}"], "one labels file"),
        (["{alone}", "--tool", "SSIM"], "has none: add a column reference"),
        (["{wide}", "--tool", "SSIM"], "give the ends of the scale with --mos-range"),
        (["{photos}", "--tool", "SSIM"], "fit it to images with MOS"),
        (["{photos}", "--split", "test"], "--split is for labels; remove it"),
        (["{photos}", "{labels}"], "not to both: remove"),
        (["nowhere.csv"], "nowhere.csv"),
        (["nowhere.parquet"], "nowhere.parquet"),
        (["kadid10k"], "kadid10k: add --root DIR, the folder that contains kadid10k"),
        (["kadid10k", "--root", "{photos}", "--mos-range", "1", "5"], "remove the options that set them"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_2(arguments, message, labels, tmp_path, capsys):
    (tmp_path / "alone.csv").write_text("image,mos\nscene0.png,3\nscene1.png,4\n")
    (tmp_path / "wide.csv").write_text("image,reference,mos\nscene0.png,scene0.png,300\nscene1.png,scene1.png,4\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "scene.png").write_bytes((tmp_path / "scene0.png").read_bytes())
    places = {"labels": labels, "photos": tmp_path / "photos"}
    places |= {"alone": tmp_path / "alone.csv", "wide": tmp_path / "wide.csv"}
    arguments = [argument.format(**places) for argument in arguments]
    assert main(["calibrate", *arguments, "--out", str(tmp_path / "x.yaml")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "x.yaml").exists()


def test_labels_in_another_form_and_mirrored_ones_give_the_same_curve(labels, tmp_path):
    with labels.open() as file:
        rows = list(csv.DictReader(file))
    lines = [{"img_path": row["image"], "dmos": 100 - float(row["mos"]), "reference": row["reference"]} for row in rows]
    (tmp_path / "dmos.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "labels.tsv").write_text(labels.read_text().replace(",", "\t"))
    given = {"a": [labels], "b": [tmp_path / "labels.tsv"], "c": [tmp_path / "dmos.jsonl", "--lower-is-better"]}
    for name, data in given.items():
        out = ["--tool", "GMSD", "--name", "scenes", "--out", str(tmp_path / f"{name}.yaml")]
        assert main(["calibrate", *map(str, data), *out]) == 0
    first, second, third = ((tmp_path / f"{name}.yaml").read_text() for name in "abc")
    assert first == second == third


def test_a_tool_for_one_distortion_is_fitted_on_distorted_photos(tmp_path, capsys):
    photos = tmp_path / "photos"
    photos.mkdir()
    for seed in range(4):
        Image.fromarray(scene(96, 128, seed)).save(photos / f"scene{seed}.png")
    out = tmp_path / "mine.yaml"
    assert main(["calibrate", str(photos), "--tool", "NOISE-SIGMA", "BLOCKINESS", "--out", str(out)]) == 0
    noise = usable("NOISE-SIGMA", str(out))
    assert noise(0.0) >= 4.5
    assert noise(TOOLS["NOISE-SIGMA"].measure(AT_LEVEL["noise"](5, scene(96, 128, 9)))) <= 2
    for part in ("with synthetic distortions", "4 pristine photos", "white_noise", "n="):
        assert part in noise.fitted_on
    blocks = usable("BLOCKINESS", str(out))
    assert "(jpeg)" in blocks.fitted_on, "other compression hardly changes its grid"
    assert blocks(1.0) >= 4.5
