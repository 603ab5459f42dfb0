"""Two processes with one results file: the second gets the name of the first, and changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError

HOLDS = """
import sys
from agenticiqa.programs.batch.results_file import ResultsFile
with ResultsFile(sys.argv[1]) as results:
    results.append({"n": 1})
    print("open", flush=True)
    sys.stdin.readline()
"""


def holding(path: Path) -> "subprocess.Popen[str]":
    """Start a process that has the file open until it gets a line."""
    command = [sys.executable, "-c", HOLDS, path]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_second_process_gets_the_name_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with holding(path) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "open\n"
        who = f"process {other.pid}" if sys.platform == "linux" else "another process"
        with pytest.raises(UserError, match=rf"run\.jsonl: {who}.* is writing to it; wait until it ends"):
            ResultsFile(path)
        other.stdin.write("\n")
        other.stdin.close()
        other.wait()
    with ResultsFile(path) as results:
        assert results.length == 1


@pytest.mark.slow
def test_a_file_may_be_opened_again_once_it_is_closed_or_its_process_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with holding(path) as other:
        assert other.stdout
        other.stdout.readline()
        other.kill()
        other.wait()
    for _ in range(2):
        with ResultsFile(path) as results:
            assert results.length == 1


def test_an_error_on_opening_releases_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("no row\n")
    for _ in range(2):
        with pytest.raises(UserError, match="line 1 is not a JSON object"):
            ResultsFile(path)
    assert os.listdir(tmp_path) == ["run.jsonl"]
