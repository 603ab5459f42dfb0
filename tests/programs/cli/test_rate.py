"""``agenticiqa rate``: the page, its scores, and the photos that are not on it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageFilter

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli import rate
from agenticiqa.programs.cli.status import OK, USAGE


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: Path) -> Path:
    """Four photos, blurred more and more, one of them a TIFF and one in a subfolder."""
    monkeypatch.chdir(tmp_path)
    photo = Image.open(examples / "coffee.webp").convert("RGB").resize((240, 160))
    for number, name in enumerate(("a #1.jpg", "b.tiff", "sub/ü 50%.png", "d.jpg")):
        path = tmp_path / "album" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        photo.filter(ImageFilter.GaussianBlur(number)).save(path)
    return tmp_path / "album"


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def shown(page: str = "rate.html") -> list[dict[str, Any]]:
    text = Path(page).read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])["showings"]  # type: ignore[no-any-return]


def test_an_album_is_scored_and_its_page_links_the_photos(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rate", "album", "--out", "pages/rate.html", "--images", "4"]) == OK
    found = shown("pages/rate.html")
    addresses = {photo["images"][0]: photo["addresses"][0] for photo in found}
    assert addresses["sub/ü 50%.png"] == "./../album/sub/%C3%BC%2050%25.png"
    assert addresses["a #1.jpg"] == "./../album/a%20%231.jpg"
    assert addresses["b.tiff"].startswith("./rate_files/")
    assert (Path("pages") / addresses["b.tiff"]).is_file()
    assert [photo["practice"] for photo in found] == [True] * 3 + [False] * 5
    assert [photo["repeat"] for photo in found].count(1) == 1
    assert "give 8 answers" in printed(capsys)
    Path("rate2.html").write_text("")
    assert main(["rate", "album", "--out", "rate2.html", "--images", "4", "--workers", "1"]) == OK
    assert [photo["images"] for photo in shown("rate2.html")] == [photo["images"] for photo in found]


def test_pairs_of_one_scene_have_the_same_original(album: Path, examples: Path) -> None:
    for number, name in enumerate(("coffee", "chelsea", "astronaut")):
        photo = Image.open(examples / f"{name}.webp").convert("RGB").resize((240, 160))
        for folder in ("refs", "copies/one", "copies/two", "copies/three"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            blur = len(folder) % 4 + number
            photo.filter(ImageFilter.GaussianBlur(blur)).save(Path(folder) / f"{name}.png")
    assert main(["rate", "copies", "--out", "rate.html", "--pairs", "--images", "9", "--reference", "refs"]) == OK
    pairs = [{image.rpartition("/")[2] for image in each["images"]} for each in shown()]
    assert len(pairs) == 7
    assert all(len(names) == 1 for names in pairs)


@pytest.mark.parametrize("folder", ["", "album/"])
def test_saved_scores_replace_an_assessment(
    album: Path, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "album", "--jsonl", f"{folder}scores.jsonl"]) == OK
    monkeypatch.setattr(rate, "_assessed", lambda *_: pytest.fail("assessed again"))
    assert main(["rate", "album", "--out", "rate.html", "--scores", f"{folder}scores.jsonl"]) == OK
    assert len({photo["images"][0] for photo in shown()}) == 4
    (album / "d.jpg").rename(album / "e.jpg")
    capsys.readouterr()
    assert main(["rate", "album", "--out", "rate.html", "--scores", f"{folder}scores.jsonl"]) == OK
    assert "no score for 1 photo of 4" in printed(capsys)
    assert {photo["images"][0] for photo in shown()} == {"a #1.jpg", "b.tiff", "sub/ü 50%.png"}


def test_paths_in_saved_scores_may_be_relative_to_their_file(album: Path) -> None:
    (album / "scores.jsonl").write_text(
        "".join(f'{{"image": "{name}", "query": "", "quality_score": 3.0}}\n' for name in ("a #1.jpg", "d.jpg"))
    )
    assert main(["rate", "album", "--out", "rate.html", "--scores", "album/scores.jsonl"]) == OK
    assert {photo["images"][0] for photo in shown()} == {"a #1.jpg", "d.jpg"}


def test_a_photo_never_gets_the_score_of_another_one(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read relative to the folder above, the path of the good photo is that of the broken one."""
    album.joinpath("sub/sub").mkdir()
    album.joinpath("d.jpg").rename("album/sub/sub/1.jpg")
    album.joinpath("sub/1.jpg").write_text("no image")
    monkeypatch.chdir(album / "sub")
    assert main(["rate", ".", "--out", "../rate.html"]) == OK
    assert {photo["images"][0] for photo in shown("../rate.html")} == {"sub/1.jpg", "ü 50%.png"}


def test_no_folder_of_copies_is_left_if_browsers_show_all_photos(album: Path) -> None:
    (album / "b.tiff").unlink()
    (album / "broken.jpg").write_bytes((album / "d.jpg").read_bytes()[:600])
    assert main(["rate", "album", "--out", "rate.html"]) == OK
    assert {path.name for path in album.parent.iterdir()} == {"album", "rate.html"}
    assert "broken.jpg" not in {photo["images"][0] for photo in shown()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rate album/d.jpg --out rate.html", "album/d.jpg: expected a folder of photos"),
        ("rate missing --out rate.html", "missing: expected a folder of photos"),
        ("rate album --out rate.txt", "rate.txt: --out writes a page; name an .html file"),
        ("rate album --out -", "-: --out writes a page"),
        ("rate album --out album", "--out needs a file, but this is a folder"),
        ("rate album --out hard.html", "hard.html: --out would overwrite a file that the command reads"),
        ("rate album --out rate.html --scores policy.yaml", "policy.yaml: line 1 is not a row of results"),
        (
            "rate album --out rate.html --scores rate.html",
            "rate.html: --out would overwrite a file that the command reads",
        ),
        ("rate album --out scores.html --scores scores.html", "scores.html: --out would overwrite a file"),
        ("rate album --out rate.html --scores other.jsonl", "album: 0 photos with a score, too few for a page"),
        ("rate album --out rate.html --scores scores.html --pairs", "album: 1 photo with a score, too few for a page"),
        ("rate album --out rate.html --reference refs", "--reference names the scene of each photo for --pairs: add"),
        ("rate album --out rate.html --images 0", "--images must be at least 1, got 0"),
        ("rate album", "the following arguments are required: --out"),
    ],
)
def test_wrong_usage_is_one_line(words: str, message: str, album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hard.html").hardlink_to(album / "d.jpg")
    Path("policy.yaml").write_text("min_score: 3\n")
    Path("rate.html").write_text("{}")
    Path("other.jsonl").write_text('{"image": "x.png", "query": "", "quality_score": 3.0}\n')
    Path("scores.html").write_text('{"image": "album/d.jpg", "query": "", "quality_score": 3.0}\n')
    with suppress(SystemExit):  # an error of the parser
        assert main(words.split()) == USAGE
    assert message in printed(capsys)
