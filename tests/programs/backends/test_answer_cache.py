"""A damaged cache costs a request and a warning, never a run; its memory is bounded."""

import logging
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.programs.backends import answer_cache
from agenticiqa.programs.backends.answer_cache import AnswerCache, install
from support.fake_server import Server, by_stage, fake_server
from support.judging import RATE, SCRIPT, program_for


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnswerCache:
    """One in a folder of the test's, in the place of DSPy's; nothing is in memory."""
    found = AnswerCache(True, False, str(tmp_path / "cache"))
    monkeypatch.setattr(dspy, "cache", found)
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    with fake_server(by_stage(SCRIPT)) as running:
        yield running


def values(folder: Path, statement: str) -> None:
    """Change every record of a cache on disk."""
    for file in folder.glob("*/cache.db"):
        with sqlite3.connect(file) as database:
            database.execute(statement)


DAMAGE = {
    "no pickle": "UPDATE Cache SET mode = 4, value = x'80049500ff'",
    "another pickle": "UPDATE Cache SET mode = 4, value = x'80047d942e'",
    "no text": "UPDATE Cache SET mode = 4, value = x'8004580200000000ff2e'",
    "a class that is gone": "UPDATE Cache SET mode = 4, value = x'80048c04676f6e65948c0158948c2e'",
    "a file that is gone": "UPDATE Cache SET mode = 2, filename = 'gone.val', value = NULL",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_asked_for_anew(
    statement: str, cache: AnswerCache, server: Server, photo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = program_for(server)
    first = program(photo, RATE)
    asked = len(server.requests)
    values(Path(str(cache.disk_cache_dir)), statement)
    assert program(photo, RATE).quality_score == first.quality_score
    assert len(server.requests) == 2 * asked
    assert program(photo, RATE).usage_by_stage["scoring"]["cached"] == 1


def test_a_database_that_is_none_is_told_and_left_out(
    cache: AnswerCache, server: Server, photo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = program_for(server)
    program(photo, RATE)
    asked = len(server.requests)
    cache.disk_cache.close()
    for file in Path(str(cache.disk_cache_dir)).glob("*/cache.db"):
        file.write_bytes(b"no database" * 100)
    with caplog.at_level(logging.WARNING, answer_cache.__name__):
        assert program(photo, RATE).quality_score
    assert len(server.requests) == 2 * asked
    assert "a damaged record of the cache in" in caplog.text


def test_a_folder_that_cannot_be_used_leaves_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(answer_cache, "DISK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delattr(dspy, "cache", raising=False)
    install(Config().with_backend("dspy"))
    assert not dspy.cache.enable_disk_cache
    assert dspy.cache.memory_cache.maxsize == answer_cache.ENTRIES_IN_MEMORY


def test_a_cache_of_the_users_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = object()
    monkeypatch.setattr(dspy, "cache", own)
    install(Config().with_backend("dspy"))
    assert vars(sys.modules["dspy"])["cache"] is own
