"""The driver of batches, with texts instead of images: every fault, and a kill at every moment."""

import base64
import os
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from dspy import lm15

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.provider_batches import driver
from agenticiqa.programs.backends.provider_batches.manifest import Manifest
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


def model_of(server: BatchServer) -> Model:
    connected = connect(StageConfig(backend="openai.m", api_base=server.url, api_key_env=VARIABLE), cache=False)
    assert connected is not None
    engine = getattr(connected.lms[0], "engine", None)
    assert isinstance(engine, Model)
    return engine


def ask(model: Model, text: str) -> str:
    message = lm15.Message(role="user", parts=(lm15.TextPart(text),))
    answer = model.complete(lm15.Request(model="m", messages=(message,), config=lm15.Config(max_tokens=9)))
    return "".join(part.text for part in answer.message.parts if isinstance(part, lm15.TextPart))


def assessed(server: BatchServer, folder: Path) -> Result:
    """Ask two questions about each of three images; the second contains the answer to the first."""
    model = model_of(server)

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

    run = BatchRun(folder, RunLimits(), str)
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


def test_a_later_process_sends_the_secrets_in_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> bool:
        raise KeyboardInterrupt

    login = base64.b64encode(b"ann:secret-0815").decode()
    with batch_server(said, key=login, hours=0.02) as server:
        server.url = f"{server.url.replace('//', '//ann:secret-0815@')}?api-version=1&api-key=key-0815"
        with monkeypatch.context() as patch:
            patch.setattr(driver.Batches, "look", interrupted)
            with pytest.raises(KeyboardInterrupt):
                assessed(server, tmp_path / "b")
        assert assessed(server, tmp_path / "b") == RIGHT
        assert not server.sent_twice()
    assert all(query.startswith("api-version=1&api-key=key-0815") for query in server.queries)
    manifest = b"".join(file.read_bytes() for file in (tmp_path / "b").glob("manifest.sqlite*"))
    assert b"api-version=1" in manifest
    assert b"0815" not in manifest


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
    for name in ("upload", "create", "discard"):
        monkeypatch.setattr(OpenAIFiles, name, around(getattr(OpenAIFiles, name)))


def killed_at(moment: int, server: BatchServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
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
        assessed(server, folder)
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


def test_an_uploaded_file_missing_in_the_manifest_is_deleted_with_its_batch(
    server: BatchServer, tmp_path: Path
) -> None:
    server.faults.append(FAULTS["create: 401"])
    with pytest.raises(BackendError):
        assessed(server, tmp_path / "b")
    changed(tmp_path / "b", "UPDATE batch SET state = 'intended', file = NULL")
    assert server.files
    run = BatchRun(tmp_path / "b", RunLimits(), str)
    run.cancel([])
    run.close()
    assert not server.files


def changed(folder: Path, statements: str) -> None:
    """Change the manifest of a folder."""
    with closing(sqlite3.connect(folder / "manifest.sqlite")) as rows:
        rows.executescript(statements)


def test_an_unreadable_manifest_is_refused(server: BatchServer, tmp_path: Path) -> None:
    (tmp_path / "manifest.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(UserError, match="the list of batches cannot be read") as refused:
        assessed(server, tmp_path)
    assert "\n" not in str(refused.value)
    assert not server.log
