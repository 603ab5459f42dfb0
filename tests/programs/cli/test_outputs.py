"""Printed results: streams of any encoding, ``-`` for stdout, JSON of one shape with failed images."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main

NAME = "caf\u00e9 \u2013 \u65e5\u672c \U0001f600.png"


@pytest.fixture
def album(tmp_path: Path, examples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one image in the current one."""
    monkeypatch.chdir(tmp_path)
    Path("album").mkdir()
    with Image.open(examples / "coffee.webp") as photo:
        photo.resize((150, 100)).save(Path("album", NAME))
    return Path("album")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--csv", "-"]], ids=["lines", "json", "csv"])
def test_characters_that_stdout_cannot_encode_are_escaped(
    album: Path, encoding: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if encoding != "cp1252" and options == ["--csv", "-"]:
        pytest.skip("one encoding is enough")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding, errors="strict"))
    assert main(["assess", "album", *options]) == 0
    check(written.getvalue().decode(encoding), options, encoding)


@pytest.mark.slow
def test_a_process_escapes_characters_that_stdout_cannot_encode(album: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1:strict"}
    command = [sys.executable, "-W", "ignore", "-m", "agenticiqa", "assess", "album"]
    ended = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr
    check(ended.stdout.decode("latin-1"), [], "latin-1")


def check(shown: str, options: list[str], encoding: str) -> None:
    """What is shown is the result of the image, by its name."""
    if options == ["--csv", "-"]:
        assert "caf\u00e9 \u2013 \\u65e5\\u672c \\U0001f600.png" in shown
    else:
        name = f"album/{NAME}"
        escaped = name.encode(encoding, "backslashreplace").decode(encoding)
        assert (json.loads(shown)[0]["image"] == name) if options else (shown.split("\t")[1] == escaped)


@pytest.mark.slow
def test_commands_use_files_of_other_commands_or_refuse_them_in_one_line(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (album / "labels.csv").write_text(f"image,mos\n{NAME},3\n")
    assert main(["assess", "album", "--jsonl", "rows.jsonl"]) == 0
    assert main(["evaluate", "album/labels.csv", "--out", "run"]) == 0
    assert main(["evaluate", "album/labels.csv", "--scorer", "RMS-CONTRAST", "--out", "scored"]) == 0
    capsys.readouterr()
    fits = {("report", "run"), ("report", "scored"), ("assess --jobs", "rows.jsonl"), ("evaluate --dry-run", "album")}
    fits |= {("compare run", "scored"), ("compare run", "run"), ("report --html page.html", "run")}
    commands = [
        "report",
        "report --html page.html",
        "compare run",
        "calibrate fusion --out c.yaml",
        "evaluate --dry-run",
    ]
    for command in (*commands, "assess --jobs"):
        for given in ("run", "scored", "rows.jsonl", "run/results.jsonl", "album", "gone"):
            status = main([*command.split(), given])
            message = capsys.readouterr().err.splitlines()
            if (command, given) in fits:
                assert status == 0, (command, given, message)
            elif status:
                assert status in (1, 2), (command, given)
                assert message[-1].startswith("agenticiqa: "), (command, given)
                assert len(message) <= 4, message
