"""``agenticiqa compare`` of images: ranking, bytes, metrics with units, the page, and files that are no images."""

import json
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import SOME_FAILED
from support.distortion_levels import scene
from support.html_tags import from_elsewhere, read


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scene as PNG, and as a good and a bad JPEG."""
    monkeypatch.chdir(tmp_path)
    original = Image.fromarray(scene(300, 400))
    original.save("o.png")
    original.save("good.jpg", quality=90)
    original.save("<b>bad.jpg", quality=4)
    (tmp_path / "text.jpg").write_text("no image")
    return tmp_path


def test_the_better_copy_comes_first_with_its_bytes_and_metrics(
    copies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = ["<b>bad.jpg", "good.jpg", "text.jpg"]
    assert main(["compare", *images, "--reference", "o.png", "--html", "both.html", "--json"]) == SOME_FAILED
    shown = capsys.readouterr()
    assert shown.err.count("text.jpg: expected an image") == 1
    found = json.loads(shown.out)
    assert [(row["rank"], row["image"]) for row in found["images"]] == [(1, "good.jpg"), (2, "<b>bad.jpg")]
    good, bad = found["images"]
    assert good["bytes"] == Path("good.jpg").stat().st_size > bad["bytes"]
    width, height = good["size"]
    assert good["bits_per_pixel"] == pytest.approx(8 * good["bytes"] / (width * height), abs=1e-4)
    assert good["metrics"]["PSNR"]["unit"] == "dB"
    assert good["metrics"]["PSNR"]["raw"] > bad["metrics"]["PSNR"]["raw"]
    assert good["metrics"].keys() == bad["metrics"].keys()
    assert len(found["failed"]) == 1
    text = Path("both.html").read_text()
    assert from_elsewhere(text) == []
    assert read(text).tags.count("b") == 2, "our own, none of a name"
    assert "&lt;b&gt;bad.jpg" in text
    assert len([*Path("both_files").glob("*_map.webp")]) == 2
