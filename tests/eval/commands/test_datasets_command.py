"""``agenticiqa datasets``, and a data set's name in ``agenticiqa evaluate``."""

from dataclasses import replace
from pathlib import Path

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.tasks.catalog import TASKS
from support import archives


def test_missing_files_of_a_whole_data_set_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.kadid10k(tmp_path)
    (tmp_path / "kadid10k/images/I02.png").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "kadid10k", replace(TASKS["kadid10k"], count=4))
        assert main(["evaluate", "kadid10k", "--root", str(tmp_path)]) == 2
    assert "1 files are missing" in capsys.readouterr().err


def test_names_are_never_wrapped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert main(["datasets"]) == 0
    words = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert {*TASKS, *QUESTION_TASKS} <= words
