"""A damaged cache record costs a request and a warning, but never a run; the memory of the cache is limited."""

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
from support.engine import scripted_lm
from support.fake_server import Server, by_stage, fake_server
from support.scripted_answers import RATE, SCRIPT, program_for


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnswerCache:
    """Replace DSPy's cache by one in a folder of the test, without entries in memory."""
    found = AnswerCache(str(tmp_path / "cache"))
    found.enable_memory_cache = False
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
    "a file outside": "UPDATE Cache SET mode = 3, filename = '../../../../../../etc/hostname', value = NULL",
    "a text": "UPDATE Cache SET mode = 1, value = 'an answer'",
    "a number": "UPDATE Cache SET mode = 1, value = 7",
    "a truth": "UPDATE Cache SET mode = 4, value = x'8004882e'",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_a_miss_and_is_rewritten(statement: str, cache: AnswerCache, tmp_path: Path) -> None:
    lm, engine = scripted_lm(["one", "two", "three"], cache=True)
    assert lm("Is it sharp?") == ["one"]
    values(tmp_path / "cache", statement)
    assert [lm("Is it sharp?"), lm("Is it sharp?")] == [["two"], ["two"]]
    assert len(engine.requests) == 2


def test_the_request_of_a_damaged_record_is_sent_again(cache: AnswerCache, server: Server, photo: Path) -> None:
    statement = DAMAGE["another pickle"]
    program = program_for(server)
    first = program(photo, RATE)
    asked = len(server.requests)
    values(Path(str(cache.disk_cache_dir)), statement)
    assert program(photo, RATE).quality_score == first.quality_score
    assert len(server.requests) == 2 * asked
    assert program(photo, RATE).usage_by_stage["scoring"]["cached"] == 1


def calling(module: str, name: str, text: str) -> bytes:
    """Return a pickle that calls a function with a text."""
    texts = [bytes([0x8C, len(each)]) + each.encode() for each in (module, name, text)]
    return b"\x80\x04" + texts[0] + texts[1] + b"\x93" + texts[2] + b"\x85R."


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("litellm.types.integrations.slack_alerting", "os.system"),  # which DSPy's restricted mode calls
        ("litellm.types.utils", "json.codecs.sys.modules.get"),
        ("litellm.types.utils", "map_finish_reason"),
    ],
)
def test_a_record_that_calls_a_function_is_a_miss(
    module: str, name: str, cache: AnswerCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({"asked": 1}, {"an": "answer"})
    record = calling(module, name, f"touch {tmp_path}/called").hex()
    values(tmp_path / "cache", f"UPDATE Cache SET mode = 4, value = x'{record}'")
    assert cache.get({"asked": 1}) is None
    assert not (tmp_path / "called").exists()
    assert "UnpicklingError" in caplog.text


def test_an_answer_of_litellm_is_kept(cache: AnswerCache) -> None:
    from litellm import ModelResponse

    answer = ModelResponse(choices=[{"message": {"role": "assistant", "content": "Good"}}], model="m")
    cache.put({"asked": 1}, answer)
    assert cache.get({"asked": 1}).choices[0].message.content == "Good"


def test_no_file_outside_the_cache_is_removed(cache: AnswerCache, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    cache.put({"asked": 1}, {"an": "answer"})
    values(tmp_path / "cache", "UPDATE Cache SET mode = 3, filename = '../../mine.txt'")
    cache.put({"asked": 1}, {"another": "answer"})
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_only_their_owner_can_read_the_folders(tmp_path: Path) -> None:
    (tmp_path / "old" / "000").mkdir(parents=True)
    for name in ("old", "new"):
        AnswerCache(str(tmp_path / name))
    folders = [tmp_path / "new", *tmp_path.glob("*/0*")]
    assert len(folders) == 33
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    assert (tmp_path / "old").stat().st_mode & 0o777 != 0o700  # which may hold other things


def test_an_invalid_database_is_reported_and_ignored(
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
    assert "a damaged record of the cache is ignored" in caplog.text


def test_without_a_usable_folder_the_cache_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(answer_cache, "DISK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delattr(dspy, "cache", raising=False)
    install(Config().with_backend("dspy"))
    assert not dspy.cache.enable_disk_cache
    assert dspy.cache.memory_cache.maxsize == answer_cache.ENTRIES_IN_MEMORY


def test_a_cache_set_by_the_caller_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    own = object()
    monkeypatch.setattr(dspy, "cache", own)
    install(Config().with_backend("dspy"))
    assert vars(sys.modules["dspy"])["cache"] is own
