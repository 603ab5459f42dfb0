"""``agenticiqa measure``: one number, a table, CSV or JSON; failed images are named, and the others measured."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.tools import TOOLS, psnr, ssim
from support.distortion_levels import scene

Run = tuple[int, str, str]


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two copies in out/, their originals in ref/, and a text among them."""
    monkeypatch.chdir(tmp_path)
    for folder in ("out", "ref"):
        (tmp_path / folder).mkdir()
    for name, pixels in (("a", scene()), ("b", scene()[::-1])):
        Image.fromarray(pixels).save(f"ref/{name}.png")
        Image.fromarray(pixels).save(f"out/{name}.jpg", quality=20)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Run:
    status = main(["measure", *arguments])
    return status, *capsys.readouterr()


def pixels(path: str):
    import numpy as np

    return np.asarray(Image.open(path).convert("RGB"))


def test_one_image_and_one_metric_print_a_single_number(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "ssim", "out/a.jpg", "--reference", "ref/a.png")
    assert (status, err) == (OK, "")
    assert float(out) == pytest.approx(ssim(pixels("out/a.jpg"), pixels("ref/a.png")), abs=1e-7)


def test_folders_are_matched_by_path_and_csv_is_printed(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "SSIM", "psnr", "ms_ssim", "out", "--reference", "ref", "--csv", "-")
    assert status == OK
    rows = [*csv.DictReader(io.StringIO(out))]
    assert [[Path(row[name]).as_posix() for name in ("image", "reference")] for row in rows] == [
        ["out/a.jpg", "ref/a.png"],
        ["out/b.jpg", "ref/b.png"],
    ]
    assert [*rows[0]] == ["image", "reference", "SSIM", "PSNR", "MS-SSIM"]
    assert float(rows[1]["PSNR"]) == psnr(pixels("out/b.jpg"), pixels("ref/b.png"))
    assert run(capsys, "psnr", "out", "--reference", "ref", "--csv", "t.csv")[:2] == (OK, "")
    assert Path("t.csv").read_text().splitlines()[0] == "image,reference,PSNR"


def test_a_glob_is_expanded_and_a_table_is_printed_to_a_pipe(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "psnr,niqe", "out/*.jpg", "--reference", "ref")
    lines = [line.split("\t") for line in out.splitlines()]
    assert status == OK
    assert lines[0] == ["image", "PSNR", "NIQE"]
    assert [line[0] for line in lines[1:]] == [str(Path("out", name)) for name in ("a.jpg", "b.jpg")]


def test_failed_images_are_named_and_have_no_value(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out/c.png").write_text("no image")
    Image.new("RGB", (300, 300)).save("out/flat.png")
    status, out, err = run(capsys, "niqe", "psnr", "rms_contrast", "out", "--reference", "out", "--json")
    rows = {Path(row["image"]).name: row for row in json.loads(out)}
    assert status == SOME_FAILED
    assert rows["c.png"]["NIQE"] is rows["c.png"]["PSNR"] is None
    assert "expected an image" in rows["c.png"]["error"]
    assert (rows["flat.png"]["NIQE"], rows["flat.png"]["PSNR"]) == (None, 100)
    assert "error" not in rows["a.jpg"]
    assert err.count("NIQE needs") == err.count("expected an image") == 1
    assert run(capsys, "niqe", "out/c.png", "none.png")[0] == USAGE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sim", "out"], "did you mean SSIM"),
        (["ssim", "out"], "--reference"),
        (["out"], "name a metric"),
        (["niqe", "out", "--reference", "ref"], "leave out --reference"),
        ([], "name a metric"),
        (["niqe"], "name at least one image after"),
        (["niqe", "out", "--workers", "0"], "at least 1"),
    ],
)
def test_wrong_usage(pairs: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    status, out, err = run(capsys, *words)
    assert (status, out, err.count("\n")) == (USAGE, "", 1)
    assert said in err


def test_the_list_has_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split("\t")[0] for line in run(capsys, "--list")[1].splitlines()[1:]] == list(TOOLS)
    assert [row["name"] for row in json.loads(run(capsys, "--list", "--json")[1])] == list(TOOLS)


def test_it_starts_without_dspy(pairs: Path) -> None:
    code = (
        "import sys; from agenticiqa.eval.cli import main;"
        "main(['measure', 'ssim', 'out/a.jpg', '--reference', 'ref/a.png']);"
        "print({'dspy', 'openai', 'matplotlib', 'onnxruntime', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["set()"], done.stderr
