"""``assess --html --csv --worst --fail-under``: overviews of all results."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, UNSCORED, USAGE
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
    with open("t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == ["album/soft.png", "album/sharp.png"]
    assert float(rows[0]["low"]) <= float(rows[0]["score"]) <= float(rows[0]["high"])
    assert f"{float(rows[0]['score']):.2f}" == score
    text = Path("out/sheet.html").read_text()
    assert from_elsewhere(text) == []
    assert 'href="./../album/soft.png"' in text
    assert len([*Path("out/sheet_files").glob("*.webp")]) == 2


def test_an_unreliable_score_is_marked_in_the_sheet_and_the_table(album: Path) -> None:
    Image.fromarray(scene(300, 400)[:2]).resize((600, 2)).save(album / "strip.png")
    assert main(["assess", "album", "--html", "sheet.html", "--csv", "t.csv"]) == OK
    with open("t.csv", newline="") as file:
        table = csv.DictReader(file)
        caveats = {Path(row["image"]).name: row["caveat"] for row in table}
    assert caveats == {"strip.png": "too thin to assess", "sharp.png": "", "soft.png": ""}
    assert table.fieldnames is not None
    assert table.fieldnames[-2:] == ["reference", "caveat"]
    assert Path("sheet.html").read_text().count('<span class="caveat">too thin to assess</span>') == 1


def test_an_unreliable_score_is_marked_among_the_worst_images(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def worst() -> dict[str, list[str]]:
        assert main(["assess", "album", "--worst", "9"]) == OK
        headings, *lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        return {"headings": headings} | {Path(line[1]).name: line[3:] for line in lines}

    assert worst() == {"headings": ["score", "image", "main distortion"], "soft.png": [], "sharp.png": []}
    Image.fromarray(scene(300, 400)[:2]).resize((600, 2)).save(album / "strip.png")
    found = worst()
    assert found.pop("headings")[-1] == "caveat"
    assert found == {"strip.png": ["too thin to assess"], "soft.png": [""], "sharp.png": [""]}


def test_a_score_below_the_limit_has_its_own_status_unless_an_image_failed(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "album", "--fail-under", "1"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 2, "results are shown as usual"
    assert main(["assess", "album", "--fail-under", "5"]) == BELOW
    assert "2 of 2 images score below 5. The lowest score is" in capsys.readouterr().err
    (album / "broken.png").write_text("no image")
    assert main(["assess", "album", "--fail-under", "5", "--html", "sheet.html"]) == SOME_FAILED
    assert "broken.png: expected an image" in Path("sheet.html").read_text()


def test_the_sheet_shows_results_of_an_earlier_run(
    album: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["assess", "album/soft.png", "--jsonl", "scores.jsonl"]) == OK
    asked = ["--jsonl", "../scores.jsonl", "--resume", "--html", "sheet.html", "--worst", "5"]
    monkeypatch.chdir(album)
    capsys.readouterr()
    assert main(["assess", ".", *asked]) == OK
    shown = capsys.readouterr()
    assert [line.split("\t")[1] for line in shown.out.splitlines()[1:]] == ["soft.png", "sharp.png"]
    assert "1 of 2 images were already assessed" in shown.err
    assert Path("sheet.html").read_text().count('<img src="sheet_files/') == 2


def test_json_is_printed_together_with_a_sheet(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "album", "--json", "--html", "sheet.html"]) == OK
    assert len(json.loads(capsys.readouterr().out)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--worst", "0"), "--worst must be at least 1, got 0"),
        (("--worst", "3", "--json"), "leave out --json"),
        (("--fail-under", "7"), "a score from 1 to 5, got 7"),
        (("--html", "."), "this is a folder"),
    ],
)
def test_impossible_options_are_reported_before_the_first_image(
    album: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "album", *options]) == USAGE
    assert said in capsys.readouterr().err


def test_an_image_without_a_score_fails_a_limit(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["assess", "album", "--fail-under", "1", "--query", "Is the cat happy?"]
    assert main(asked) == UNSCORED
    assert "2 of 2 images have no score to compare with --fail-under 1" in capsys.readouterr().err
    for _ in range(2):
        assert main([*asked, "--jsonl", "s.jsonl", "--resume"]) == UNSCORED, "also of an earlier run"


def test_json_lines_on_stdout_include_failed_images(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (album / "broken.png").write_text("no image")
    found = {}
    for output in (["--json"], ["--jsonl", "-"], ["--jsonl", "-", "--html", "s.html"]):
        assert main(["assess", "album", "gone.png", *output]) == SOME_FAILED
        out = capsys.readouterr().out
        rows = json.loads(out) if output == ["--json"] else [json.loads(line) for line in out.splitlines()]
        found[" ".join(output)] = {row["image"]: row.get("error") for row in rows}
    assert len(found["--json"]) == 4
    assert found["--jsonl -"] == found["--jsonl - --html s.html"] == found["--json"]
