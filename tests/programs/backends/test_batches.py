"""The driver of batches, with texts instead of images: every fault, and a kill at every moment."""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from dspy import lm15

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.backends.provider_batches import driver
from agenticiqa.programs.backends.provider_batches.manifest import Manifest
from agenticiqa.programs.backends.provider_batches.offline_file import OfflineFile
from agenticiqa.programs.backends.provider_batches.openai_files import OpenAIFiles
from agenticiqa.programs.backends.provider_batches.rounds import BatchRun, Pending
from agenticiqa.programs.batch.assess_many import stages_to_forget
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import BackendError, UserError
from support.batch_server import FAULTS, RESENT, BatchServer, batch_server
from support.loopback import Body

KEY, VARIABLE = "sk-batch-key", "KEY_OF_THE_TEST"
JOBS = [Job(f"{name}.png") for name in "abc"]
QUICK = ("create: no answer after it was made", "ended: expired, one answered", "results: one missing")
ENDS_THE_RUN = {"create: 401", "create: 400", "refused: a wrong file"}
FAILS_ONE = {"answer: 400", "answer: 500 every time"}
Result = dict[str, str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setattr(driver, "FIRST_POLL", 0.01)
    monkeypatch.setattr(driver, "LONGEST_POLL", 0.02)


def said(request: Body) -> str:
    """Return an answer that depends on the question."""
    (part,) = request["messages"][-1]["content"]
    return f"<{part['text']}>"


def model_of(server: BatchServer, backend: str) -> Model:
    connected = connect(StageConfig(backend=backend, api_base=server.url, api_key_env=VARIABLE), cache=False)
    assert connected is not None
    engine = getattr(connected.lms[0], "engine", None)
    assert isinstance(engine, Model)
    return engine


def ask(model: Model, text: str) -> str:
    message = lm15.Message(role="user", parts=(lm15.TextPart(text),))
    answer = model.complete(lm15.Request(model="m", messages=(message,), config=lm15.Config(max_tokens=9)))
    return "".join(part.text for part in answer.message.parts if isinstance(part, lm15.TextPart))


def assessed(server: BatchServer, folder: Path, backend: str = "openai.m") -> Result:
    """Ask two questions about each of three images; the second contains the answer to the first."""
    model = model_of(server, backend)

    def judge(job: Job) -> Any:
        try:
            return ask(model, f"again: {ask(model, job.name)}")
        except Pending as pending:
            return pending
        except lm15.LM15Error as error:
            return f"failed: {error.status}"

    def several(
        function: Callable[[Job], Any], jobs: Iterable[Job], stop: Callable[[Any], bool]
    ) -> Iterable[tuple[Job, Any]]:
        return [(job, function(job)) for job in jobs]

    run = BatchRun(folder, Limits(), str)
    try:
        with run.sending():
            outcomes = run.assess_in_rounds(judge, JOBS, several, lambda outcome: False, stages_to_forget)
            found = {job.name: outcome for job, outcome in outcomes}
    finally:
        run.close()
    return found


RIGHT = {job.name: f"<again: <{job.name}>>" for job in JOBS}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with batch_server(said, key=KEY, hours=0.02) as running:
        yield running


def test_every_request_is_answered_once(server: BatchServer, tmp_path: Path) -> None:
    assert assessed(server, tmp_path / "b") == RIGHT
    assert [len(batch.requests) for batch in server.made()] == [3, 3]
    assert assessed(server, tmp_path / "b") == RIGHT
    assert len(server.made()) == 2, "what was answered is not asked again"
    assert not server.files, "files of requests are deleted"


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FAULTS]
)
def test_a_fault_loses_nothing_and_repeats_nothing(fault: str, server: BatchServer, tmp_path: Path) -> None:
    server.faults.append(FAULTS[fault])
    said_of_it = ""
    try:
        found = assessed(server, tmp_path / "b")
    except BackendError as error:
        said_of_it = str(error)
        found = assessed(server, tmp_path / "b")
    assert KEY not in said_of_it
    assert bool(said_of_it) == (fault in ENDS_THE_RUN)
    wrong = {name for name in RIGHT if found[name] != RIGHT[name]}
    assert len(wrong) == (fault in FAILS_ONE)
    assert bool(server.sent_twice()) == (fault in RESENT)
    server.faults.clear()
    assert assessed(server, tmp_path / "b") == RIGHT, "what failed is asked anew"
    assert not server.files, "no file of requests is left, also none whose upload was not answered"


def points(monkeypatch: pytest.MonkeyPatch, at: Callable[[], None]) -> None:
    """Call ``at`` before and after everything that changes the manifest or the provider."""

    def around(function: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            at()
            result = function(*args, **options)
            at()
            return result

        return wrapped

    for name in ("intend", "update", "keep", "release"):
        monkeypatch.setattr(Manifest, name, around(getattr(Manifest, name)))
    for kind in (OpenAIFiles, OfflineFile):
        for name in ("upload", "create", "discard"):
            monkeypatch.setattr(kind, name, around(getattr(kind, name)))


def killed_at(
    moment: int, server: BatchServer, folder: Path, monkeypatch: pytest.MonkeyPatch, backend: str = "openai.m"
) -> bool:
    """Return whether a run in another process was killed at this moment; false if it has fewer moments."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = moment

    def at() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        points(monkeypatch, at)
        assessed(server, folder, backend)
    finally:
        os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that was forked")
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_kill_at_any_moment_loses_nothing(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case kills the run at a quarter of the moments."""
    for moment in range(part, 200, 4):
        with batch_server(said, key=KEY, hours=0.0) as server:
            folder = tmp_path / f"{moment}"
            was_killed = killed_at(moment, server, folder, monkeypatch)
            found = assessed(server, folder)
            assert found == RIGHT, moment
            assert not server.sent_twice(), moment
            assert not server.files, moment
            if not was_killed:
                break
    assert moment > 20


def test_files_are_split_at_the_providers_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenAIFiles, "most_requests", 2)
    with batch_server(said, key=KEY, hours=0.0) as server:
        assert assessed(server, tmp_path / "b") == RIGHT
        assert [len(batch.requests) for batch in server.made()][:2] == [2, 1]
    monkeypatch.setattr(OpenAIFiles, "most_bytes", 290)
    with batch_server(said, key=KEY, hours=0.0) as server:
        assert assessed(server, tmp_path / "c") == RIGHT
        assert {len(batch.requests) for batch in server.made()} == {1}
        assert all(len(content) <= 290 for content in server.files.values())


@contextmanager
def vllm_beside(folder: Path) -> Iterator[BatchServer]:
    """Answer every file of requests in a thread, instead of ``vllm run-batch``; the address has no server."""
    stop = threading.Event()

    def answer_files() -> None:
        while not stop.wait(0.01):
            for path in folder.glob("*.in.jsonl"):
                out = path.with_name(path.name.replace(".in.", ".out."))
                if not out.exists():
                    asked = [json.loads(line) for line in path.read_text().splitlines()]
                    out.write_text("".join(json.dumps(line_of(each)) + "\n" for each in reversed(asked)))

    def line_of(asked: dict[str, Any]) -> dict[str, Any]:
        content = asked["body"]["messages"][-1]["content"]
        text = f"<{content if isinstance(content, str) else content[0]['text']}>"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": None}
        reply = {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "v", "custom_id": asked["custom_id"], "response": reply, "error": None}

    thread = threading.Thread(target=answer_files)
    thread.start()
    try:
        yield BatchServer(said, KEY, 0.0, url="http://127.0.0.1:1/v1")
    finally:
        stop.set()
        thread.join()


def test_vllm_reads_and_writes_files(tmp_path: Path) -> None:
    with vllm_beside(tmp_path) as server:
        assert assessed(server, tmp_path, "vllm.m") == RIGHT


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that was forked")
def test_a_kill_at_any_moment_loses_no_files_for_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in range(1, 200, 2):  # after each change
        folder = tmp_path / f"{moment}"
        with vllm_beside(folder) as server:
            was_killed = killed_at(moment, server, folder, monkeypatch, "vllm.m")
            assert assessed(server, folder, "vllm.m") == RIGHT, moment
        asked = [json.loads(line)["custom_id"] for path in folder.glob("*.in.jsonl") for line in path.open()]
        assert len(asked) == len(set(asked)) == 6, moment
        if not was_killed:
            break
    assert moment > 20


def test_an_uploaded_file_missing_in_the_manifest_is_deleted_with_its_batch(
    server: BatchServer, tmp_path: Path
) -> None:
    server.faults.append(FAULTS["create: 401"])
    with pytest.raises(BackendError):
        assessed(server, tmp_path / "b")
    changed(tmp_path / "b", "UPDATE batch SET state = 'intended', file = NULL")
    assert server.files
    run = BatchRun(tmp_path / "b", Limits(), str)
    run.cancel([])
    run.close()
    assert not server.files


# How the table of batches was declared when there were also batches of Anthropic, in which ``newest`` found them again.
BEFORE = """
ALTER TABLE batch RENAME TO later;
CREATE TABLE batch (
  n INTEGER PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, api_base TEXT, key_env TEXT, state TEXT NOT NULL,
  requests INTEGER NOT NULL, bytes INTEGER NOT NULL, file TEXT, handle TEXT, newest TEXT, told TEXT NOT NULL DEFAULT '',
  made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO batch SELECT n, name, backend, api_base, key_env, state, requests, bytes, file, handle, NULL, message, made
  FROM later;
DROP TABLE later;
"""


@pytest.fixture
def of_before(server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run of an earlier version that was interrupted with one batch under way."""

    def interrupted(run: BatchRun) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BatchRun, "look", interrupted)
        with pytest.raises(KeyboardInterrupt):
            assessed(server, tmp_path / "b")
    changed(tmp_path / "b", BEFORE)
    return tmp_path / "b"


def changed(folder: Path, statements: str) -> None:
    """Change the manifest of a folder."""
    with closing(sqlite3.connect(folder / "manifest.sqlite")) as rows:
        rows.executescript(statements)


def test_a_manifest_of_an_earlier_version_is_read(of_before: Path, server: BatchServer) -> None:
    assert assessed(server, of_before) == RIGHT
    assert not server.sent_twice()
    assert not server.files


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("UPDATE batch SET backend = 'anthropic.m'", r"batch 1 \(batch_1\) is for anthropic.m, .* run without --batch"),
        ("UPDATE batch SET backend = 'google.m', state = 'intended', handle = NULL", r"not sent yet\) is for google.m"),
        ("ALTER TABLE batch DROP COLUMN told", "the list of batches cannot be read"),
    ],
)
def test_an_unusable_manifest_is_refused(change: str, shown: str, of_before: Path, server: BatchServer) -> None:
    before = list(server.log)
    changed(of_before, change)
    with pytest.raises(UserError, match=shown) as refused:
        assessed(server, of_before)
    assert "\n" not in str(refused.value)
    assert server.log == before
