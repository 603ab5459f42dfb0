"""What works with ``assess --jsonl`` works with ``assess --parquet``, as a user calls them."""

from pathlib import Path

import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli.main import main
from support.instant import InstantIQA, assessed_once
from support.shards import png

STORES = {"lines": ["--jsonl", "scores.jsonl"], "shards": ["--parquet", "scores", "--shard-images", "4"]}


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine gray images and a broken one, of which a program without computations assesses the first nine."""
    monkeypatch.chdir(tmp_path)
    assessed_once()  # before its program is replaced
    monkeypatch.setattr(AgenticIQA, "forward", InstantIQA.forward)
    monkeypatch.setattr(AgenticIQA, "seconds", 0.0, raising=False)
    (tmp_path / "album").mkdir()
    for number in range(9):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    (tmp_path / "album" / "broken.png").write_bytes(b"none")
    return tmp_path / "album"


def assess(store: str, *words: str) -> int:
    return main(["assess", "album", "--workers", "1", *STORES[store], *words])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--csv", "-"], 1),
        (["--csv", "t.csv", "--html", "sheet.html", "--worst", "2"], 1),
        (["--fail-under", "3"], 1),
        (["--fail-under", "0"], 2),
        (["--csv", "-", "--worst", "2"], 2),
    ],
)
def test_overviews_are_the_same(words: list[str], status: int, album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for store in STORES:
        assert assess(store, *words) == status
        said = capsys.readouterr()
        about = [
            line for line in said.err.splitlines() if "written to" in line or "fail-under" in line or "below" in line
        ]
        files = [*map(Path, ("t.csv", "sheet.html"))]
        shown.append((said.out, about, [file.read_text() for file in files if file.exists()]))
    assert shown[0] == shown[1]
    assert "album/0.png" in "".join([shown[0][0], *shown[0][1], *shown[0][2]]) or status == 2


def test_an_overview_of_shards_has_the_results_of_earlier_runs(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (album / "broken.png").unlink()
    assert assess("shards") == 0
    assert assess("shards", "--csv", "-", "--fail-under", "2") == 4
    shown = capsys.readouterr()
    assert shown.out.count("album/") == 9
    assert "4 of 9 images score below 2" in shown.err
