"""Without a home folder, or with one that cannot be written, caches end with the run, and one line says so."""

import logging
import os
import pwd
from pathlib import Path

import dspy
import pytest
from PIL import Image

from agenticiqa.configs import load_config
from agenticiqa.eval.cli import main
from agenticiqa.programs.backends import answer_cache
from agenticiqa.programs.images import files

NOTE = "caches end with this run; name one in AGENTICIQA_CACHE"


@pytest.fixture(params=["none", "a file", "unknown user"])
def no_home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take the home folder away, in one of three ways; return a folder to work in."""
    for name in ("HOME", files.CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "mpl"))  # main sets it otherwise
    (tmp_path / "file").touch()
    if request.param == "none":

        def no_entry(number: int) -> None:
            raise KeyError(number)

        monkeypatch.setattr(pwd, "getpwuid", no_entry)
    else:
        own = str(tmp_path / "file/cache") if request.param == "a file" else "~no-such-user/cache"
        monkeypatch.setenv(files.CACHE_VARIABLE, own)
    files._temporary_folder.cache_clear()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_run_without_a_home(no_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("RGB", (64, 64), "gray").save("a.png")
    for command in (["assess", "a.png", "--mode", "fast"], ["tools"], ["backends"], ["compare", "a.png", "a.png"]):
        files._temporary_folder.cache_clear()
        assert main(command) == 0
        assert capsys.readouterr().err.count(NOTE) == 1
    assert sorted(os.listdir()) == ["a.png", "file"]


def test_the_temporary_folder_is_one_and_private(no_home: Path) -> None:
    folder = files.cache_folder()
    assert files.cache_folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()


def test_answers_are_kept_in_memory_without_a_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSPY_CACHEDIR")
    monkeypatch.setattr(answer_cache, "DISK_CACHE_DIR", ".dspy_cache")  # DSPy's, without a home folder
    (tmp_path / "c.yaml").write_text("backend: openai.x\n")
    monkeypatch.delitem(vars(dspy), "cache", raising=False)
    with caplog.at_level(logging.WARNING):
        answer_cache.install(load_config(tmp_path / "c.yaml"))
    assert not dspy.cache.enable_disk_cache
    assert "answers are kept in memory only; name a folder in DSPY_CACHEDIR" in caplog.text
    assert os.listdir() == ["c.yaml"]


def test_a_config_may_name_the_home_of_an_unknown_user(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("adapter: ~no-such-user/a.npz\n")
    assert load_config(tmp_path / "c.yaml").adapter == str(tmp_path / "~no-such-user/a.npz")
