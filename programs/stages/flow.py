"""Write a stage once, run it sync or async, with its independent parts side by side.

A flow is a generator that yields what it wants done and is sent the result::

    def steps(self, query):
        plan = yield Call(self.planner, {"query": query})         # one call
        seen, measured = yield [self.look(plan), self.measure()]  # sub-flows, side by side
        return plan, seen, measured

:func:`run` drives it with plain calls and threads, :func:`arun` with ``acall`` and tasks. A call's exception is raised
inside the flow, where the ``yield`` stands. Of sub-flows all run to their end before the first exception is raised.
"""

import asyncio
import contextvars
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dspy

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call: a DSPy module (awaited through its ``acall`` when async) or a plain function (then run in a thread).

    ``settings`` are DSPy's for the time of the call, such as the model to ask.
    """

    target: Callable[..., Any]
    inputs: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


Flow = Generator[Any, Any, T]


def run(flow: Flow[T]) -> T:
    """Drive a flow to its end and return its result."""
    step = flow.send
    given: Any = None
    while True:
        try:
            wanted = step(given)
        except StopIteration as end:
            return end.value
        try:
            given, step = _do(wanted), flow.send
        except Exception as error:  # handed to the flow, which decides
            given, step = error, flow.throw


async def arun(flow: Flow[T]) -> T:
    """Drive a flow to its end inside an event loop and return its result."""
    step = flow.send
    given: Any = None
    while True:
        try:
            wanted = step(given)
        except StopIteration as end:
            return end.value
        try:
            given, step = await _ado(wanted), flow.send
        except Exception as error:  # handed to the flow, which decides
            given, step = error, flow.throw


def _do(wanted: Call | list[Flow[Any]]) -> Any:
    if isinstance(wanted, Call):
        with dspy.context(**wanted.settings):
            return wanted.target(**wanted.inputs)
    with ThreadPoolExecutor(max(1, len(wanted))) as pool:
        # DSPy's settings live in a context variable, which threads do not inherit by themselves.
        running = [pool.submit(contextvars.copy_context().run, run, flow) for flow in wanted]
        # Not left to the pool, which joins its threads: before Python 3.13 a Ctrl-C during Thread.join marks the thread
        # as ended while it runs (python/cpython#90882), and a thread that is in C++ code when Python exits aborts.
        wait(running)
    return [done.result() for done in running]


async def _ado(wanted: Call | list[Flow[Any]]) -> Any:
    if isinstance(wanted, Call):
        with dspy.context(**wanted.settings):
            if isinstance(wanted.target, dspy.Module):
                return await wanted.target.acall(**wanted.inputs)
            return await asyncio.to_thread(wanted.target, **wanted.inputs)
    outcomes = await asyncio.gather(*(arun(flow) for flow in wanted), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


class Stage(dspy.Module):
    """A DSPy module whose work is a flow: a subclass writes ``steps`` once, and is callable sync and async.

    The inputs are passed on as they come because ``dspy.Module`` calls ``forward`` so; ``steps`` names and types them.
    """

    steps: Callable[..., Flow[dspy.Prediction]]

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Run the steps here."""
        return run(self.steps(**inputs))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Run the steps in the event loop."""
        return await arun(self.steps(**inputs))


class Computed(dspy.Module):
    """A DSPy module that calls nothing else: a subclass writes ``compute`` once, and is callable sync and async."""

    compute: Callable[..., dspy.Prediction]

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Compute here."""
        return self.compute(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Compute in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.compute, **inputs)
