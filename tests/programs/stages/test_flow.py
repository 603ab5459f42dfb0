"""Flows: written once, run sync and async, with independent parts side by side."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import dspy
import pytest

from agenticiqa.programs.stages import flow as flow_module
from agenticiqa.programs.stages.flow import Flow, Stage, arun, call, call_under, run, together


def in_loop(flow: Flow[Any]) -> Any:
    return asyncio.run(arun(flow))


both_ways = pytest.mark.parametrize("drive", [run, in_loop])
Drive = Callable[[Flow[Any]], Any]


def double(number: int) -> int:
    return 2 * number


def fail(message: str) -> None:
    raise LookupError(message)


def ready(number: int) -> Flow[int]:
    """A flow that wants nothing done."""
    return number
    yield


@both_ways
def test_a_call_gives_its_result_to_the_flow_and_the_flow_its_own(drive: Drive) -> None:
    def flow() -> Flow[str]:
        first = yield from call(double, 2)
        second = yield from call(double, number=first)
        return f"{first}, {second}"

    assert drive(flow()) == "4, 8"


@both_ways
def test_a_flow_without_any_call_is_a_flow(drive: Drive) -> None:
    assert drive(ready(7)) == 7


@both_ways
def test_settings_hold_for_one_call_only(drive: Drive) -> None:
    def flow() -> Flow[list[int]]:
        inside = yield from call_under({"max_errors": 17}, lambda: dspy.settings.max_errors)
        after = yield from call(lambda: dspy.settings.max_errors)
        return [inside, after]

    assert drive(flow()) == [17, dspy.settings.max_errors]


@both_ways
def test_the_results_of_parts_come_in_the_order_of_the_parts(drive: Drive) -> None:
    first_may_end = threading.Event()

    def slow() -> int:
        first_may_end.wait(10)
        return 1

    assert drive(together(call(slow), call(first_may_end.set))) == (1, None)


@both_ways
def test_parts_run_side_by_side(drive: Drive) -> None:
    """Two parts that each wait for the other; one after the other, they would never end."""
    meeting = threading.Barrier(2, timeout=10)
    assert sorted(drive(together(call(meeting.wait), call(meeting.wait)))) == [0, 1]


@both_ways
def test_parts_may_have_parts(drive: Drive) -> None:
    inner = together(together(call(double, 1), call(double, 2)), together(call(double, 10), ready(5)))
    assert drive(inner) == ((2, 4), (20, 5))


@both_ways
def test_parts_that_want_nothing_done_have_their_results_too(drive: Drive) -> None:
    assert drive(together(ready(1), ready(2))) == (1, 2)
    assert drive(together(ready(1), call(double, 2))) == (1, 4)
    assert drive(together(call(double, 2), ready(1))) == (4, 1)


@pytest.mark.parametrize("other", [lambda: ready(1), lambda: failing_at_once()])
def test_a_part_that_is_left_alone_runs_in_the_same_thread(
    other: Callable[[], Flow[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline nothing is asked while an answer is made, so nothing should cost a thread."""

    def none_of_these(workers: int) -> ThreadPoolExecutor:
        raise AssertionError(f"{workers} threads for one part")

    monkeypatch.setattr(flow_module, "ThreadPoolExecutor", none_of_these)
    threads: list[int] = []

    def note() -> None:
        threads.append(threading.get_ident())

    def part() -> Flow[None]:
        yield from call(note)
        yield from call(note)

    for flow in (together(other(), part()), together(part(), other())):
        with contextlib.suppress(LookupError):
            run(flow)
    assert threads == [threading.get_ident()] * 4


def failing_at_once() -> Flow[int]:
    raise LookupError("at once")
    yield


@both_ways
def test_an_error_is_raised_where_the_flow_waits_and_may_be_handled_there(drive: Drive) -> None:
    def flow() -> Flow[str]:
        try:
            yield from call(fail, "lost")
        except LookupError as error:
            return f"handled {error.args[0]}"
        return "not raised"

    assert drive(flow()) == "handled lost"


@both_ways
def test_an_error_that_nobody_handles_reaches_the_caller(drive: Drive) -> None:
    with pytest.raises(LookupError, match="lost"):
        drive(call(fail, "lost"))


@both_ways
def test_an_error_that_the_flow_raises_itself_reaches_the_caller(drive: Drive) -> None:
    def flow() -> Flow[None]:
        yield from call(double, 1)
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        drive(flow())
    with pytest.raises(LookupError, match="at once"):
        drive(failing_at_once())


@both_ways
def test_every_part_runs_to_its_end_before_an_error_of_one_is_raised(drive: Drive) -> None:
    ended = threading.Event()
    failed = threading.Event()

    def failing() -> Flow[None]:
        failed.set()
        yield from call(fail, "lost")

    def patient() -> Flow[None]:
        yield from call(failed.wait, timeout=10)
        yield from call(double, 1)
        ended.set()

    with pytest.raises(LookupError, match="lost"):
        drive(together(failing(), patient()))
    assert ended.is_set()


@both_ways
def test_a_part_runs_to_its_end_though_the_other_failed_at_once(drive: Drive) -> None:
    ended: list[int] = []

    def patient() -> Flow[None]:
        ended.append((yield from call(double, 1)))

    with pytest.raises(LookupError, match="at once"):
        drive(together(failing_at_once(), patient()))
    with pytest.raises(LookupError, match="at once"):
        drive(together(patient(), failing_at_once()))
    assert ended == [2, 2]


@both_ways
def test_the_first_parts_error_is_the_one_that_is_raised(drive: Drive) -> None:
    with pytest.raises(LookupError, match="first"):
        drive(together(call(fail, "first"), call(fail, "second")))
    with pytest.raises(LookupError, match="first"):
        drive(together(call(fail, "first"), failing_at_once()))


@both_ways
def test_parts_see_dspys_settings_of_whoever_runs_the_flow(drive: Drive) -> None:
    def seen() -> Flow[int]:
        return (yield from call(lambda: int(dspy.settings.max_errors)))

    with dspy.context(max_errors=41):
        assert drive(together(seen(), seen())) == (41, 41)


@both_ways
def test_what_a_part_sets_in_its_context_it_can_reset_after_a_call(drive: Drive) -> None:
    """Begun in one thread and brought to its end in another, a part stays in one context."""
    variable = ContextVar("variable", default=0)

    @contextlib.contextmanager
    def setting(number: int) -> Any:
        token = variable.set(number)
        yield
        variable.reset(token)

    def part(number: int) -> Flow[int]:
        with setting(number):
            return (yield from call(variable.get))

    assert drive(together(part(1), part(2))) == (1, 2)
    assert drive(together(part(1), ready(2))) == (1, 2)
    assert variable.get() == 0


@both_ways
def test_the_trace_and_the_usage_of_every_part_are_collected_in_one(drive: Drive) -> None:
    def note(number: int) -> None:
        dspy.settings.trace.append(number)
        dspy.settings.usage_tracker.add_usage("model", {"tokens": number})

    with dspy.context(trace=[]), dspy.track_usage() as usage:
        drive(together(call(note, 1), call(note, 2)))
        assert sorted(dspy.settings.trace) == [1, 2]
    assert usage.get_total_tokens() == {"model": {"tokens": 3}}


class Half(Stage[tuple[float, str]]):
    """A stage around another module."""

    def __init__(self, inner: dspy.Module) -> None:
        super().__init__()
        self.inner = inner

    def steps(self, number: int) -> Flow[tuple[float, str]]:
        seen, how = yield from call(self.inner, number=number)
        return seen / 2, how


class HowCalled(dspy.Module):
    """A module that tells which of its two ways it was called."""

    def forward(self, number: int) -> tuple[int, str]:
        return number, "sync"

    async def aforward(self, number: int) -> tuple[int, str]:
        return number, "async"


def test_a_stage_calls_modules_the_way_that_it_is_called() -> None:
    stage = Half(HowCalled())
    assert stage(number=3) == stage(3) == (1.5, "sync")
    assert asyncio.run(stage.acall(number=3)) == (1.5, "async")


def test_a_stage_refuses_what_its_steps_do_not_name() -> None:
    with pytest.raises(TypeError, match="nombre"):
        Half(HowCalled())(nombre=3)


def test_in_an_event_loop_plain_functions_run_beside_it() -> None:
    """A long measurement would otherwise stop every other task."""

    async def both() -> bool:
        released = threading.Event()
        task = asyncio.create_task(arun(call(released.wait, timeout=10)))
        await asyncio.sleep(0)
        released.set()
        return await task

    assert asyncio.run(both())


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_is_raised_once_the_parts_side_by_side_have_ended() -> None:
    """A thread that is still in native code when Python exits ends the process with SIGABRT."""
    ended = threading.Event()

    def interrupted() -> None:
        time.sleep(0.1)  # until the main thread does nothing but wait
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run(together(call(interrupted), call(double, 1)))
    assert ended.is_set()
