"""The driver of batches, with texts in place of images: every fault, and a kill at every moment."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dspy import lm15

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.batches import run as driver
from agenticiqa.programs.backends.batches import services
from agenticiqa.programs.backends.batches.manifest import Manifest
from agenticiqa.programs.backends.batches.run import BatchRun
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.deferred import Pending, by_batches
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.rounds import judge_in_rounds
from agenticiqa.programs.errors import BackendError
from support.batch_server import FAULTS, RESENT, BatchServer, batch_server
from support.loopback import Body
from support.providers import ANTHROPIC, GEMINI, OPENAI, Dialect

KEY, VARIABLE = "sk-batch-key", "KEY_OF_THE_TEST"
JOBS = [Job(f"{name}.png") for name in "abc"]
QUICK = ("create: no answer after it was made", "ended: expired, one answered", "results: one missing")
OF_THE_WIRE = (  # faults that each provider's own requests and lines of results meet in their own way
    "upload: no answer after it was there",
    "create: 500 after it was made",
    "create: a page in place of JSON",
    "create: an object without an id",
    "create: 401",
    "refused: a wrong file",
    "state: 429",
    "state: the batch is gone",
    "ended: expired, one answered",
    "answer: 500 every time",
    "answer: 429",
    "answer: 400",
    "results: cut off twice",
    "results: connection broken off",
    "results: the file is deleted",
)
ENDS_THE_RUN = {"create: 401", "create: 400", "refused: a wrong file"}
FAILS_ONE = {"answer: 400", "answer: 500 every time"}
Result = dict[str, str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setattr(driver, "FIRST_LOOK", 0.01)
    monkeypatch.setattr(driver, "LONGEST_LOOK", 0.02)


def installed(dialect: Dialect) -> None:
    """Skip a test where the provider's package is not."""
    if dialect is not OPENAI:
        pytest.importorskip("anthropic" if dialect is ANTHROPIC else "google.genai")


def said(request: Body) -> str:
    """An answer that depends on the question."""
    (part,) = request["messages"][-1]["content"]
    return f"<{part['text']}>"


def model_of(server: BatchServer) -> Model:
    kind = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}[server.dialect.name]
    stage = StageConfig(backend=f"{kind}.m", api_base=server.url, api_key_env=VARIABLE)
    backend = connect(stage, cache=False)
    assert backend is not None
    engine = getattr(backend.lms[0], "engine", None)
    assert isinstance(engine, Model)
    return engine


def ask(model: Model, text: str) -> str:
    message = lm15.Message(role="user", parts=(lm15.TextPart(text),))
    answer = model.complete(lm15.Request(model="m", messages=(message,), config=lm15.Config(max_tokens=9)))
    return "".join(part.text for part in answer.message.parts if isinstance(part, lm15.TextPart))


def judged(server: BatchServer, folder: Path, tell: Callable[[str], None] = str) -> Result:
    """Two questions about each of three images, the second made of the answer to the first."""
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

    run = BatchRun(folder, Limits(), tell)
    try:
        with by_batches(run):
            found = {job.name: out for job, out in judge_in_rounds(run, judge, JOBS, several, lambda outcome: False)}
    finally:
        run.close()
    return found


RIGHT = {job.name: f"<again: <{job.name}>>" for job in JOBS}


def cases(*sets: tuple[Dialect, Iterable[Any]]) -> list[Any]:
    """A dialect and a case each. Anthropic's and Google's are slow tests: their packages take seconds to import."""
    return [
        pytest.param(dialect, case, id=f"{dialect.name}-{case}", marks=[] if is_quick else [pytest.mark.slow])
        for dialect, found in sets
        for case in found
        for is_quick in [dialect is OPENAI and case in QUICK]
    ]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[BatchServer]:
    installed(request.param)
    with batch_server(request.param, said, key=KEY, hours=0.02) as running:
        yield running


@pytest.mark.parametrize(
    "server", [OPENAI, *(pytest.param(each, marks=pytest.mark.slow) for each in (ANTHROPIC, GEMINI))], indirect=True
)
def test_all_are_answered_once(server: BatchServer, tmp_path: Path) -> None:
    assert judged(server, tmp_path / "b") == RIGHT
    assert [len(batch.requests) for batch in server.made()] == [3, 3]
    assert judged(server, tmp_path / "b") == RIGHT
    assert len(server.made()) == 2, "what was answered is not asked again"
    assert not server.files, "files of requests are deleted"


@pytest.mark.parametrize(
    ("server", "fault"),
    cases(
        (OPENAI, FAULTS),
        (ANTHROPIC, (name for name in OF_THE_WIRE if not name.startswith(("upload", "refused")))),  # it has neither
        (GEMINI, OF_THE_WIRE),
    ),
    indirect=["server"],
)
def test_a_fault_loses_nothing_and_repeats_nothing(fault: str, server: BatchServer, tmp_path: Path) -> None:
    server.faults.append(FAULTS[fault])
    said_of_it = ""
    try:
        found = judged(server, tmp_path / "b")
    except BackendError as error:
        said_of_it = str(error)
        found = judged(server, tmp_path / "b")
    assert KEY not in said_of_it
    assert bool(said_of_it) == (fault in ENDS_THE_RUN)
    wrong = {name for name in RIGHT if found[name] != RIGHT[name]}
    assert len(wrong) == (fault in FAILS_ONE)
    assert bool(server.sent_twice()) == (fault in RESENT)
    server.faults.clear()
    assert judged(server, tmp_path / "b") == RIGHT, "what failed is asked anew"
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
    made = services.service

    def watched(*args: Any) -> Any:
        found = made(*args)
        for name in ("upload", "create", "discard"):
            setattr(found, name, around(getattr(found, name)))
        return found

    monkeypatch.setattr(driver, "service", watched)


def killed_at(moment: int, server: BatchServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a run in a process of its own was killed at this moment; not where it has fewer."""
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
        judged(server, folder)
    finally:
        os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that was forked")
@pytest.mark.parametrize(("dialect", "part"), cases((OPENAI, range(4)), (ANTHROPIC, [0]), (GEMINI, [2])))
def test_a_kill_at_any_moment(dialect: Dialect, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the moments each."""
    installed(dialect)
    for moment in range(part, 200, 4):
        with batch_server(dialect, said, key=KEY, hours=0.0) as server:
            folder = tmp_path / f"{dialect.name}-{moment}"
            was_killed = killed_at(moment, server, folder, monkeypatch)
            found = judged(server, folder)
            assert found == RIGHT, moment
            assert not server.sent_twice(), moment
            assert not server.files, moment
            if not was_killed:
                break
    assert moment > 20


def until_it_is_told(line: str) -> None:
    """Interrupt the run at the line that asks to decide."""
    if "--adopt 1 HANDLE" in line and "--send-again 1" in line and "batch_1 (made" in line:
        raise KeyboardInterrupt


@contextmanager
def one_that_may_have_been_sent(folder: Path) -> Iterator[BatchServer]:
    """A run that was interrupted where it asks to decide, and its server, which ends batches at once from now on."""
    installed(ANTHROPIC)
    with batch_server(ANTHROPIC, said, key=KEY, hours=60) as server:
        server.faults.append(FAULTS["create: 500 after it was made"])
        with pytest.raises(KeyboardInterrupt):
            judged(server, folder, until_it_is_told)
        server.hours = 0.0
        yield server


@pytest.mark.slow
def test_a_batch_that_may_have_been_sent_is_the_users_to_decide(tmp_path: Path) -> None:
    """Anthropic's batches have no name of ours; one that has not ended is told from others by nothing but its size."""
    with one_that_may_have_been_sent(tmp_path / "b") as server:
        run = BatchRun(tmp_path / "b", Limits(), print)
        run.adopt(1, "batch_1")
        run.close()
        assert judged(server, tmp_path / "b") == RIGHT
        assert not server.sent_twice()


@pytest.mark.slow
def test_a_batch_that_was_not_sent_is_sent_again(tmp_path: Path) -> None:
    with one_that_may_have_been_sent(tmp_path / "b") as server:
        server.batches["batch_1"].made = float("inf")
        run = BatchRun(tmp_path / "b", Limits(), print)
        run.send_again(1)
        run.close()
        assert judged(server, tmp_path / "b") == RIGHT
        assert len(server.made()) == 3


def test_files_are_full_at_the_providers_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenticiqa.programs.backends.batches.openai_files import OpenAIFiles

    monkeypatch.setattr(OpenAIFiles, "most_requests", 2)
    with batch_server(OPENAI, said, key=KEY, hours=0.0) as server:
        assert judged(server, tmp_path / "b") == RIGHT
        assert [len(batch.requests) for batch in server.made()][:2] == [2, 1]
    monkeypatch.setattr(OpenAIFiles, "most_bytes", 290)
    with batch_server(OPENAI, said, key=KEY, hours=0.0) as server:
        assert judged(server, tmp_path / "c") == RIGHT
        assert {len(batch.requests) for batch in server.made()} == {1}
        assert all(len(content) <= 290 for content in server.files.values())


def test_vllm_reads_and_writes_files(tmp_path: Path) -> None:
    """By a process in the place of ``vllm run-batch``."""
    import json
    import threading
    import time

    stop = threading.Event()

    def vllm() -> None:
        while not stop.is_set():
            for path in (tmp_path / "b").glob("*.in.jsonl"):
                out = path.with_name(path.name.replace(".in.", ".out."))
                if not out.exists():
                    asked = [json.loads(line) for line in path.read_text().splitlines()]
                    out.write_text("".join(json.dumps(line_of(each)) + "\n" for each in reversed(asked)))
            time.sleep(0.01)

    def line_of(asked: dict[str, Any]) -> dict[str, Any]:
        content = asked["body"]["messages"][-1]["content"]
        text = f"<{content if isinstance(content, str) else content[0]['text']}>"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": None}
        reply = {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "v", "custom_id": asked["custom_id"], "response": reply, "error": None}

    thread = threading.Thread(target=vllm)
    thread.start()
    try:
        server = BatchServer(OPENAI, said, KEY, 0.0, url="http://127.0.0.1:1/v1")
        assert judged_as("vllm.m", server, tmp_path / "b") == RIGHT
    finally:
        stop.set()
        thread.join()


def judged_as(backend: str, server: BatchServer, folder: Path) -> Result:
    """As ``judged``, of another backend."""
    with pytest.MonkeyPatch.context() as patch:
        stage = StageConfig(backend=backend, api_base=server.url, api_key_env=VARIABLE)
        made = connect(stage, cache=False)
        assert made is not None
        patch.setitem(globals(), "model_of", lambda server: getattr(made.lms[0], "engine", None))
        return judged(server, folder)
