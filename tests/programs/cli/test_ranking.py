"""A folder at a terminal: a ranking from ten images on, cards for fewer images and with -v; --quiet hides notes."""

from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import SOME_FAILED
from support.distortion_levels import scene


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten copies of a scene at falling quality, and a text; stdout is a terminal of 100 columns."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "album").mkdir()
    for number in range(10):
        Image.fromarray(scene(300, 400)).save(f"album/{number}.jpg", quality=95 - 10 * number)
    Path("album/text.jpg").write_text("no image")
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "100", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "album"


def test_fewer_images_and_verbose_show_cards(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "album/1.jpg", "album/2.jpg"]) == 0
    assert capsys.readouterr().out.count("╭─") == 2
    assert main(["assess", "album", "-v"]) == SOME_FAILED
    assert capsys.readouterr().out.count("╭─") == 10


def test_quiet_hides_notes_but_no_error(
    album: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    images = ["album/1.jpg", "album/text.jpg"]
    assert main(["assess", *images, "--csv", "t.csv", "--jsonl", "r.jsonl"]) == SOME_FAILED
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert main(["assess", *images, "--csv", "t.csv", "--jsonl", "q.jsonl", "-q"]) == SOME_FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line.split(": ")[1] for line in shown.err.splitlines()] == ["album/text.jpg"]
