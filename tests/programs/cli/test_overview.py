"""``assess --html --csv --worst --fail-under``: overviews of all results."""

import csv
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.configs.options import Group, Option
from agenticiqa.programs.cli import overview
from agenticiqa.programs.cli.arguments import ASSESS
from agenticiqa.programs.cli.commands import COMMANDS
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.overview import FILES, Entries, FileOfAll
from agenticiqa.programs.cli.parser import OUTPUTS
from agenticiqa.programs.cli.status import OK, USAGE
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
    assert float(rows[0]["low"]) <= float(rows[0]["score"]) <= float(rows[0]["high"])
    assert f"{float(rows[0]['score']):.2f}" == score
    assert Path("t.csv").read_bytes().startswith(b"\xef\xbb\xbfimage,score,")
    capsys.readouterr()
    assert main(["assess", "--jobs", "t.csv", "--csv", "-"]) == OK  # the table is read back
    assert capsys.readouterr().out == Path("t.csv").read_bytes().decode("utf-8-sig")
    text = Path("out/sheet.html").read_text()
    assert from_elsewhere(text) == []
    assert 'href="./../album/soft.png"' in text
    assert len([*Path("out/sheet_files").glob("*.webp")]) == 2


def test_an_option_and_a_row_of_files_are_a_whole_output(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It replaces the single results, ``-`` is stdout, a file is written, and only one output goes to stdout."""

    def text(file: Path, entries: Entries, failed: Sequence[str]) -> str:
        return f"| {len(entries)} | {len(failed)} |\n"

    assess = COMMANDS["assess"]
    added = Option("--listing FILE", "write a table", Path)
    monkeypatch.setitem(COMMANDS, "assess", replace(assess, options=(*assess.options, added)))
    monkeypatch.setattr(overview, "FILES", (*FILES, FileOfAll("listing", "listing", text)))
    for place in ("-", "t.txt"):
        assert main(["assess", "album", "--listing", place]) == OK
    shown = capsys.readouterr()
    assert shown.out == Path("t.txt").read_text() == "| 2 | 0 |\n"
    assert "The listing was written to t.txt" in shown.err
    assert not Path("-").exists()
    others = "leave out --json, --jsonl -, --csv - and --worst"
    for words in (["--csv", "-"], ["--worst", "1"], ["--json"]):
        assert main(["assess", "album", "--listing", "-", *words]) == USAGE
        first, rest = ("csv", others.replace("csv", "listing")) if "-" in words else ("listing", others)
        assert f"--{first} - prints the " in (said := capsys.readouterr().err)
        assert f" to stdout: {rest}, or give --{first} a file\n" in said


def test_the_help_and_the_checks_of_outputs_know_every_file_of_all_images() -> None:
    (about,) = (group.about for group in ASSESS if isinstance(group, Group) and group.title == "overview")
    assert [file.option for file in FILES if f"--{file.option}" not in str(about)] == []
    assert {file.option for file in FILES} <= {*OUTPUTS}
