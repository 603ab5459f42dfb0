"""``assess --html --csv --worst --fail-under``: overviews of all results."""

import csv
import shutil
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import OK
from support.distortion_levels import blur, scene
from support.html_tags import from_elsewhere


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharp and a blurred scene."""
    folder = tmp_path_factory.mktemp("pictures")
    sharp = scene(300, 400)
    Image.fromarray(sharp).save(folder / "sharp.png")
    Image.fromarray(blur(4, sharp)).save(folder / "soft.png")
    return folder


@pytest.fixture
def album(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pictures, tmp_path / "album")
    return tmp_path / "album"


def test_sheet_table_and_worst_images_replace_the_single_results(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "album", "--html", "out/sheet.html", "--csv", "t.csv", "--worst", "1"]) == OK
    shown = capsys.readouterr()
    score, image, finding = shown.out.splitlines()[1].split("\t")
    assert (image, len(shown.out.splitlines())) == ("album/soft.png", 2)
    assert "blur" in finding
    with open("t.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == ["album/soft.png", "album/sharp.png"]
    assert float(rows[0]["score_low_80"]) <= float(rows[0]["quality_score"]) <= float(rows[0]["score_high_80"])
    assert f"{float(rows[0]['quality_score']):.2f}" == score
    assert Path("t.csv").read_bytes().startswith(b"\xef\xbb\xbfimage,quality_score,")
    capsys.readouterr()
    assert main(["assess", "--jobs", "t.csv", "--csv", "-"]) == OK  # the table is read back
    assert capsys.readouterr().out == Path("t.csv").read_bytes().decode("utf-8-sig")
    text = Path("out/sheet.html").read_text()
    assert from_elsewhere(text) == []
    assert 'href="./../album/soft.png"' in text
    assert len([*Path("out/sheet_files").glob("*.webp")]) == 2
