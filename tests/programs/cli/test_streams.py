"""Closed, full and broken streams: rows are saved, messages go to stderr or are dropped, no traceback appears."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.programs.cli.streams import Messages
from support.files import json_lines

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a shell of POSIX")

LOST = "stdout is closed; redirect it to a file"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m agenticiqa"
    return subprocess.run(
        ["bash", "-c", command.replace("agenticiqa", program, 1)], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "closed", [">&-", "<&- >&- 2>&-", "2>/dev/full", "2> >(exec <&-)"], ids=["stdout", "all", "full", "broken pipe"]
)
def test_rows_are_saved_whatever_happens_to_the_messages(tmp_path: Path, closed: str) -> None:
    Image.new("RGB", (64, 64), "gray").save(tmp_path / "a.png")
    done = run(f"agenticiqa assess gone.png a.png --mode fast --jsonl r.jsonl {closed}", tmp_path)
    assert done.returncode == 1  # gone.png
    assert [row["image"] for row in json_lines(tmp_path / "r.jsonl")] == ["a.png"]
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert ("gone.png: " in done.stderr) == (closed == ">&-")


@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        ("gate a.png gone.png --csv - 2>&-", 1, "image,", ""),
        ("measure psnr a.png --reference a.png >&-", 1, "", f"agenticiqa: output: {LOST}\n"),
        ("tools --csv - >&-", 1, "", LOST),
        ("--version >/dev/full", 1, "", "agenticiqa: output: No space left on device\n"),
        ("assess --jobs - <&-", 2, "", "<stdin>: expected JSON lines"),
        ("assess - <&-", 2, "", "cannot be read"),
        ("nonsense 2>&-", 2, "", ""),
    ],
)
def test_a_closed_stream_is_one_line(tmp_path: Path, command: str, status: int, out: str, err: str) -> None:
    Image.new("RGB", (64, 64), "gray").save(tmp_path / "a.png")
    done = run(f"agenticiqa {command}", tmp_path)
    assert done.returncode == status
    assert done.stdout.lstrip("\ufeff").startswith(out)
    assert "agenticiqa: " not in done.stdout
    assert err in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_a_full_pipe_that_does_not_block_drops_messages() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with Messages(writer, "w") as messages:
        for _ in range(100):
            assert messages.write(bytes(4096)) > 0
    os.close(reader)
