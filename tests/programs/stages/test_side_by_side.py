"""The threads of a run: two parallel calls, awaited modules, and no more computing threads than cores."""

import asyncio
import contextvars
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.stages import side_by_side as module
from agenticiqa.programs.stages.side_by_side import MOST_AWAITED, StageModule, beside, cpu_slot, in_thread

MANY = 4 * available_cores() + 4


def side_by_side(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """Return both results."""
    with beside(second) as running:
        one = first()
    return one, running.result()


def fail(message: str) -> None:
    raise LookupError(message)


def test_both_run_at_the_same_time_and_give_their_results_in_order() -> None:
    """Each waits for the other, so in sequence they would never end."""
    meeting = threading.Barrier(2, timeout=10)
    assert side_by_side(lambda: (meeting.wait(), "first")[1], lambda: (meeting.wait(), "second")[1]) == (
        "first",
        "second",
    )


def test_the_first_call_stays_in_the_callers_thread() -> None:
    here = threading.get_ident()
    first, second = side_by_side(threading.get_ident, threading.get_ident)
    assert first == here != second


@pytest.mark.parametrize("failing", ["first", "second"])
def test_an_exception_is_raised_once_both_have_ended(failing: str) -> None:
    ended, failed = threading.Event(), threading.Event()

    def patient() -> None:
        failed.wait(10)
        time.sleep(0.05)
        ended.set()

    def hasty() -> None:
        failed.set()
        fail("lost")

    with pytest.raises(LookupError, match="lost"):
        side_by_side(*((hasty, patient) if failing == "first" else (patient, hasty)))
    assert ended.is_set()


def test_of_two_exceptions_the_first_is_raised() -> None:
    with pytest.raises(LookupError, match="first"):
        side_by_side(lambda: fail("first"), lambda: fail("second"))


def test_both_have_the_settings_trace_and_usage_of_the_caller() -> None:
    def note(number: int) -> int:
        dspy.settings.trace.append(number)
        dspy.settings.usage_tracker.add_usage("model", {"tokens": number})
        return int(dspy.settings.max_errors)

    with dspy.context(trace=[], max_errors=41), dspy.track_usage() as usage:
        assert side_by_side(lambda: note(1), lambda: note(2)) == (41, 41)
        assert sorted(dspy.settings.trace) == [1, 2]
    assert usage.get_total_tokens() == {"model": {"tokens": 3}}


def test_a_streamed_run_stays_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the thread that ``dspy.streamify`` created can send to it."""
    monkeypatch.setattr(module, "ThreadPoolExecutor", lambda workers: pytest.fail("a thread"))
    with dspy.context(send_stream=object()):
        assert side_by_side(threading.get_ident, threading.get_ident) == (threading.get_ident(),) * 2


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("waits", [True, False])
def test_ctrl_c_is_raised_once_both_have_ended(waits: bool) -> None:
    """A thread that is still in native code when Python exits ends the process with SIGABRT."""
    ended = threading.Event()

    def interrupting() -> None:
        time.sleep(0.1)  # until the main thread is at work, or does nothing but wait
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        side_by_side((lambda: None) if waits else (lambda: time.sleep(10)), interrupting)
    assert ended.is_set()


class Awaited(StageModule):
    """A user's stage that has only a ``forward``."""

    def forward(self, work: Callable[[], Any]) -> Any:
        return work()


def test_a_stage_is_awaited_beside_the_event_loop_in_the_callers_context() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def main() -> tuple[int, int]:
        variable.set(7)
        released = threading.Event()
        with dspy.context(max_errors=41):
            task = asyncio.create_task(
                Awaited().acall(work=lambda: (released.wait(10), variable.get(), dspy.settings.max_errors)[1:])
            )
            await asyncio.sleep(0)
            released.set()
            seen: tuple[int, int] = await task
            return seen

    assert asyncio.run(main()) == (7, 41)


def test_awaited_calls_raise_their_errors() -> None:
    with pytest.raises(LookupError, match="lost"):
        asyncio.run(in_thread(fail, "lost"))


@pytest.mark.parametrize(("asked", "most"), [(8, MOST_AWAITED), (MOST_AWAITED + 8, MOST_AWAITED + 8)])
def test_the_number_of_awaited_calls_is_limited(asked: int, most: int) -> None:
    """The limit is ``MOST_AWAITED``, or DSPy's ``async_max_workers`` if that is higher; each loop has its own."""
    meeting = threading.Barrier(most, timeout=20)
    watched = Watched()

    def work(wait: bool) -> None:
        if wait:
            meeting.wait()
        watched()

    async def main() -> None:
        with dspy.context(async_max_workers=asked):
            await asyncio.gather(*(in_thread(work, number < most) for number in range(most + 40)))

    asyncio.run(main())
    assert watched.most <= most
    asyncio.run(in_thread(watched))


class Watched:
    """A function that takes 10 ms and counts the threads inside."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)
        with self._lock:
            self.now -= 1


def test_no_more_threads_compute_than_there_are_cores() -> None:
    watched = Watched()

    def compute(_: int) -> None:
        with cpu_slot(), cpu_slot():  # what computes within a computation does not wait for itself
            watched()

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(compute, range(MANY)))
    assert 1 <= watched.most <= available_cores()


def test_a_core_is_released_after_an_error() -> None:
    for _ in range(MANY):
        with pytest.raises(KeyError), cpu_slot():
            raise KeyError
    with cpu_slot():
        assert os.getpid()
