"""A function in another process: its results, errors and log reach the parent, and it ends with its use."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agenticiqa.programs.batch.worker import ONE_THREAD, NotStarted, Worker, WorkerStopped
from agenticiqa.programs.errors import Unanswered
from support.elsewhere import perform

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(scope="module")
def process() -> Iterator[Worker]:
    apart = Worker(pickle.dumps(perform))
    yield apart
    apart.close()


def test_a_worker_is_another_process_with_one_thread_and_the_same_search_path(process: Worker) -> None:
    shown = process("report")
    assert shown["pid"] != os.getpid()
    assert shown["environment"].items() >= ONE_THREAD.items()
    assert set(shown["path"]) >= set(filter(None, sys.path))


def test_an_error_is_raised_in_the_parent_with_its_traceback(process: Worker) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        process("divide")
    assert "elsewhere.py" in raised.value.__notes__[0]
    assert process("well?") == "well?"


def test_a_result_that_cannot_be_pickled_is_an_error(process: Worker) -> None:
    with pytest.raises(RuntimeError, match="a and b"):
        process("fail in an odd way")
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        process("return a function")
    assert process("well?") == "well?"


def test_an_unpicklable_error_is_reported_with_its_text(process: Worker) -> None:
    with pytest.raises(Unanswered, match="planner: no usable answer") as raised:
        process("give up")
    assert (raised.value.reasons, raised.value.last_output) == (["it was no JSON"], "the moon")


@POSIX
def test_a_worker_ignores_ctrl_c(process: Worker) -> None:
    assert process("be interrupted") == "be interrupted"


def test_printing_and_reading_in_a_worker_do_not_disturb_the_exchange(process: Worker) -> None:
    assert process("print") == 6
    with pytest.raises(EOFError):
        process("read")
    assert process("well?") == "well?"


def test_log_records_of_a_worker_are_logged_in_the_parent(process: Worker, caplog: pytest.LogCaptureFixture) -> None:
    process("log")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("agenticiqa.elsewhere", "2 lines\nof it")
    ]


@pytest.mark.parametrize(
    ("order", "said"), [("exit", "ended with status 3"), pytest.param("be killed", "memory", marks=POSIX)]
)
def test_a_stopped_worker_is_reported_and_the_next_call_starts_another(process: Worker, order: str, said: str) -> None:
    before = process("report")["pid"]
    with pytest.raises(WorkerStopped, match=said):
        process(order)
    assert process("report")["pid"] != before


def test_a_worker_that_cannot_start_differs_from_one_that_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotStarted, match="status 1"):
        Worker(b"no pickle")("well?")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NotStarted, match="nowhere"):
        Worker(pickle.dumps(perform))("well?")


PARENT = """
import os, pickle
from agenticiqa.programs.batch.worker import Worker
process = Worker(pickle.dumps(str))
assert process(7) == "7"
os.kill(os.getpid(), 9)
"""


@POSIX
def test_a_worker_ends_with_its_parent_even_if_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stderr=subprocess.PIPE)
    _, error = parent.communicate(timeout=60)  # stderr is closed when the last process with it has ended
    assert parent.returncode == -9
    assert error == b""
