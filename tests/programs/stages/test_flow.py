"""Flows: written once, run sync and async, with independent parts side by side."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import dspy
import pytest

from agenticiqa.programs.stages.flow import Call, Flow, Stage, arun, run


def in_loop(flow: Flow[Any]) -> Any:
    return asyncio.run(arun(flow))


both_ways = pytest.mark.parametrize("drive", [run, in_loop])
Drive = Callable[[Flow[Any]], Any]


def double(number: int) -> int:
    return 2 * number


def fail(message: str) -> None:
    raise LookupError(message)


def doubled(number: int) -> Flow[int]:
    return (yield Call(double, {"number": number}))


@both_ways
def test_a_call_gives_its_result_to_the_flow_and_the_flow_its_own(drive: Drive) -> None:
    def flow() -> Flow[str]:
        first = yield Call(double, {"number": 2})
        second = yield from doubled(first)
        return f"{first}, {second}"

    assert drive(flow()) == "4, 8"


@both_ways
def test_a_flow_without_any_call_is_a_flow(drive: Drive) -> None:
    def flow() -> Flow[int]:
        return 7
        yield

    assert drive(flow()) == 7


@both_ways
def test_the_results_of_parts_come_in_the_order_of_the_parts(drive: Drive) -> None:
    def flow() -> Flow[list[int]]:
        return (yield [doubled(number) for number in range(5)])

    assert drive(flow()) == [0, 2, 4, 6, 8]


@both_ways
def test_no_parts_give_no_results(drive: Drive) -> None:
    def flow() -> Flow[list[int]]:
        return (yield [])

    assert drive(flow()) == []


@both_ways
def test_parts_run_side_by_side(drive: Drive) -> None:
    """Two parts that each wait for the other; one after the other, they would never end."""
    meeting = threading.Barrier(2, timeout=10)

    def part() -> Flow[int]:
        return (yield Call(meeting.wait, {}))

    def flow() -> Flow[list[int]]:
        return (yield [part(), part()])

    assert sorted(drive(flow())) == [0, 1]


@both_ways
def test_parts_may_have_parts(drive: Drive) -> None:
    def inner(number: int) -> Flow[int]:
        return sum((yield [doubled(number), doubled(number + 1)]))

    def flow() -> Flow[list[int]]:
        return (yield [inner(1), inner(10)])

    assert drive(flow()) == [6, 42]


@both_ways
def test_an_error_is_raised_where_the_flow_waits_and_may_be_handled_there(drive: Drive) -> None:
    def flow() -> Flow[str]:
        try:
            yield Call(fail, {"message": "lost"})
        except LookupError as error:
            return f"handled {error.args[0]}"
        return "not raised"

    assert drive(flow()) == "handled lost"


@both_ways
def test_an_error_that_nobody_handles_reaches_the_caller(drive: Drive) -> None:
    def flow() -> Flow[None]:
        yield Call(fail, {"message": "lost"})

    with pytest.raises(LookupError, match="lost"):
        drive(flow())


@both_ways
def test_an_error_that_the_flow_raises_itself_reaches_the_caller(drive: Drive) -> None:
    def flow() -> Flow[None]:
        yield Call(double, {"number": 1})
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        drive(flow())


@both_ways
def test_every_part_runs_to_its_end_before_an_error_of_one_is_raised(drive: Drive) -> None:
    ended = threading.Event()
    failed = threading.Event()

    def failing() -> Flow[None]:
        failed.set()
        yield Call(fail, {"message": "lost"})

    def patient() -> Flow[None]:
        yield Call(failed.wait, {"timeout": 10})
        yield from doubled(1)
        ended.set()

    def flow() -> Flow[list[None]]:
        return (yield [failing(), patient()])

    with pytest.raises(LookupError, match="lost"):
        drive(flow())
    assert ended.is_set()


@both_ways
def test_the_first_parts_error_is_the_one_that_is_raised(drive: Drive) -> None:
    def part(message: str) -> Flow[None]:
        yield Call(fail, {"message": message})

    def flow() -> Flow[list[None]]:
        return (yield [part("first"), part("second")])

    with pytest.raises(LookupError, match="first"):
        drive(flow())


@both_ways
def test_parts_see_dspys_settings_of_whoever_runs_the_flow(drive: Drive) -> None:
    def seen() -> Flow[int]:
        return (yield Call(lambda: dspy.settings.max_errors, {}))

    def flow() -> Flow[list[int]]:
        return (yield [seen(), seen()])

    with dspy.context(max_errors=41):
        assert drive(flow()) == [41, 41]


@both_ways
def test_the_trace_and_the_usage_of_every_part_are_collected_in_one(drive: Drive) -> None:
    def note(number: int) -> None:
        dspy.settings.trace.append(number)
        dspy.settings.usage_tracker.add_usage("model", {"tokens": number})

    def part(number: int) -> Flow[None]:
        yield Call(note, {"number": number})

    def flow() -> Flow[list[None]]:
        return (yield [part(1), part(2)])

    with dspy.context(trace=[]), dspy.track_usage() as usage:
        drive(flow())
        assert sorted(dspy.settings.trace) == [1, 2]
    assert usage.get_total_tokens() == {"model": {"tokens": 3}}


class Half(Stage):
    """A stage around another module."""

    def __init__(self, inner: dspy.Module) -> None:
        super().__init__()
        self.inner = inner

    def steps(self, number: int) -> Flow[dspy.Prediction]:
        reply = yield Call(self.inner, {"number": number})
        return dspy.Prediction(half=reply.number / 2, how=reply.how)


class RunRecord(dspy.Module):
    """A module that tells which of its two ways it was called."""

    def forward(self, number: int) -> dspy.Prediction:
        return dspy.Prediction(number=number, how="sync")

    async def aforward(self, number: int) -> dspy.Prediction:
        return dspy.Prediction(number=number, how="async")


def test_a_stage_calls_modules_the_way_that_it_is_called() -> None:
    stage = Half(RunRecord())
    assert stage(number=3).toDict() == {"half": 1.5, "how": "sync"}
    assert asyncio.run(stage.acall(number=3)).toDict() == {"half": 1.5, "how": "async"}


def test_a_stage_refuses_what_its_steps_do_not_name() -> None:
    with pytest.raises(TypeError, match="nombre"):
        Half(RunRecord())(nombre=3)


def test_in_an_event_loop_plain_functions_run_beside_it() -> None:
    """A long measurement would otherwise stop every other task."""

    async def both() -> bool:
        released = threading.Event()

        def flow() -> Flow[bool]:
            return (yield Call(released.wait, {"timeout": 10}))

        task = asyncio.create_task(arun(flow()))
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

    def part(target: Callable[[], None]) -> Flow[None]:
        yield Call(target, {})

    def flow() -> Flow[None]:
        yield [part(interrupted), part(lambda: None)]

    with pytest.raises(KeyboardInterrupt):
        run(flow())
    assert ended.is_set()
