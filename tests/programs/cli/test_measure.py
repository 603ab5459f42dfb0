"""``agenticiqa measure``: one number, a table, CSV or JSON; failed images are named, and the others measured."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.tools import ssim
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


def test_it_starts_without_dspy(pairs: Path) -> None:
    code = (
        "import sys; from agenticiqa.eval.cli import main;"
        "main(['measure', 'ssim', 'out/a.jpg', '--reference', 'ref/a.png']);"
        "print({'dspy', 'openai', 'matplotlib', 'onnxruntime', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["set()"], done.stderr
