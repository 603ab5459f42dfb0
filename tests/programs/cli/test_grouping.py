"""``assess --group`` and ``--xmp``: the best of near duplicates, why, and that no photo is touched."""

import csv
import hashlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageFilter

from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.groups import AlbumPhoto, grouped, reasons
from agenticiqa.programs.cli.status import OK, USAGE


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: Path) -> Path:
    """A photo in three frames, one out of focus, with a small and a bad copy; another photo twice; one alone."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "album"
    folder.mkdir()
    photo = Image.open(examples / "astronaut.webp").convert("RGB")
    photo.save(folder / "a1.jpg", quality=93)
    photo.crop((3, 2, photo.width, photo.height)).filter(ImageFilter.GaussianBlur(3)).save(folder / "a2.jpg")
    photo.save(folder / "a3_sent.jpg", quality=12)
    photo.resize((photo.width // 2, photo.height // 2)).save(folder / "a4_small.png")
    other = Image.open(examples / "coffee.webp").convert("RGB")
    other.save(folder / "b1.png")
    other.save(folder / "b2.jpg", quality=8)
    Image.open(examples / "chelsea.webp").convert("RGB").save(folder / "c.jpg", quality=93)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_best_of_each_group_is_kept_and_photos_stay_as_they_are(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digests(album)
    (album / "c.jpg.xmp").write_text("<of another program/>")
    assert main(["assess", "album", "--group", "--xmp", "--csv", "t.csv", "--html", "page.html"]) == OK
    shown = capsys.readouterr()
    heading, *lines, last = [line.split("\t") for line in shown.out.splitlines()]
    assert heading == ["group", "verdict", "image", "why"]
    kept = {Path(line[2]).name: line[3] for line in lines if line[1] == "keep"}
    assert [*kept] == ["b1.png", "a1.jpg"] or [*kept] == ["a1.jpg", "b1.png"]
    assert kept["a1.jpg"].startswith("best of 4: score ")
    why = {Path(line[2]).name: line[3] for line in lines if line[1] != "keep"}
    assert why["a4_small.png"] == "near copy of a1.jpg: smaller, 0.066 for 0.26 megapixels"
    assert {name for name, text in why.items() if "near copy of a1.jpg: score" in text} == {"a2.jpg", "a3_sent.jpg"}
    assert last == ["7 images: 3 to keep, 4 near copies in 2 groups"]

    after = digests(album)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {f"{name}.xmp" for name in before}
    assert (album / "c.jpg.xmp").read_text() == "<of another program/>"
    assert "1 sidecars of other programs stay" in shown.err
    assert rating(album / "a1.jpg.xmp") in range(1, 6)
    assert rating(album / "a2.jpg.xmp") == -1

    with open("t.csv", newline="") as file:
        notes = {Path(row["image"]).name: row["group"] for row in csv.DictReader(file)}
    assert notes == {**kept, **why, "c.jpg": ""}
    assert "near copy of a1.jpg" in Path("page.html").read_text()
    assert main(["assess", "album", "--xmp"]) == OK
    assert rating(album / "a2.jpg.xmp") in (1, 2)


def rating(sidecar: Path) -> int:
    (found,) = ElementTree.fromstring(sidecar.read_text()).iter(
        "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description"
    )
    assert found.attrib["{urn:agenticiqa:1}reason"]
    return int(found.attrib["{http://ns.adobe.com/xap/1.0/}Rating"])


def test_nothing_alike_is_a_line(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "album/c.jpg", "album/b1.png", "--group"]) == OK
    assert capsys.readouterr().out == "2 images: 2 to keep, 0 near copies in 0 groups\n"
    assert main(["assess", "album", "--group", "--json"]) == USAGE


def test_a_chain_of_frames_is_no_single_group() -> None:
    frames = {n: AlbumPhoto((1 << 6 * n) - 1, 3 + n / 10, 100, 10, str(n)) for n in range(5)}
    assert grouped(frames) == [[4, 3], [2, 1]]


def test_of_equal_scores_more_pixels_then_more_bytes_are_kept() -> None:
    found = {
        "small": AlbumPhoto(0, 3.4, 50, 900, "small"),
        "large": AlbumPhoto(0, 3.0, 100, 10, "large"),
        "twin": AlbumPhoto(1, 2.95, 100, 20, "twin"),
        "none": AlbumPhoto(3, None, 100, 99, "none"),
    }
    (group,) = grouped(found)
    assert group == ["twin", "small", "large", "none"]
    assert reasons([found[each] for each in group]) == [
        "best of 4: score 2.95, the others 3.00 to 3.40",
        "near copy of twin: smaller, 5e-05 for 0.0001 megapixels",
        "near copy of twin: as good, 10 for 20 bytes",
        "near copy of twin: no score for 2.95",
    ]
