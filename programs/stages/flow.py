"""Write a stage once, run it sync or async, with independent parts side by side, and every type known.

A flow is a generator that yields the steps it wants done and is sent their results. Write it with :func:`call` and
:func:`together`, which keep the types of arguments and results::

    def steps(self, query: str) -> Flow[Answered]:
        planned = yield from call(self.planner, query=query)                           # one call
        seen, scores = yield from together(self._look(planned), self._measure(planned))  # two flows, side by side
        return Answered(planned, seen, scores)

:func:`run` drives a flow with plain calls and threads, :func:`arun` with ``acall`` and tasks. The exception of a call
is raised inside the flow, at its ``yield from``. Flows that run together all come to their end before the first
exception is raised.
"""

import asyncio
import contextvars
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

import dspy

from agenticiqa.programs.stages.computing import on_a_core

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Call:
    """A step: one call with its arguments bound, under DSPy settings (such as the model to ask) of its own."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Together:
    """A step: these flows, side by side; its result is the list of theirs, in their order."""

    flows: tuple[Generator["Step", Any, Any], ...]


Step = Call | Together
Flow = Generator[Step, Any, T]


def call(target: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """Call a DSPy module (through its ``acall`` when async) or a plain function (in a thread when async)."""
    result: T = yield Call(target, args, kwargs)
    return result


def compute(target: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """As :func:`call`, for a function that decodes or measures and waits for nothing: when a core is free."""
    result: T = yield Call(_computed, (target, *args), kwargs)
    return result


def _computed(target: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    with on_a_core():
        return target(*args, **kwargs)


def call_under(settings: Mapping[str, Any], target: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """As :func:`call`, with these DSPy settings for the time of the call."""
    result: T = yield Call(target, args, kwargs, settings)
    return result


def together(first: Flow[A], second: Flow[B], /) -> Flow[tuple[A, B]]:
    """Run two flows side by side. Both come to their end before the first one's exception, or the second's, is raised.

    Sync, each flow is begun in the current thread; only if both want something done, threads are used.
    """
    one, other = yield Together((first, second))
    return one, other


def run(flow: Flow[T]) -> T:
    """Drive a flow to its end and return its result."""
    end: Future[T] = Future()
    step = _begin(flow, end)
    if step is not None:
        _finish(flow, step, end)
    return end.result()


async def arun(flow: Flow[T]) -> T:
    """Drive a flow to its end inside an event loop and return its result."""
    end: Future[T] = Future()
    step = _begin(flow, end)
    while step is not None:
        try:
            outcome = await _ado(step)
        except Exception as error:  # handed to the flow, which decides
            step = _resume(flow.throw, error, end)
        else:
            step = _resume(flow.send, outcome, end)
    return end.result()


def _begin(flow: Flow[T], end: "Future[T]") -> Step | None:
    """The first step that a flow wants done; ``None`` when it came to its end, which is then noted in ``end``."""
    return _resume(flow.send, None, end)


def _finish(flow: Flow[T], step: Step | None, end: "Future[T]") -> None:
    """Do this step and all further ones."""
    while step is not None:
        try:
            outcome = _do(step)
        except Exception as error:  # handed to the flow, which decides
            step = _resume(flow.throw, error, end)
        else:
            step = _resume(flow.send, outcome, end)


def _resume(proceed: Callable[[Any], Step], outcome: Any, end: "Future[T]") -> Step | None:
    """Hand an outcome to the flow; as ``_begin``."""
    try:
        return proceed(outcome)
    except StopIteration as stop:
        end.set_result(stop.value)
    except Exception as error:
        end.set_exception(error)
    return None


def _do(step: Step) -> Any:
    if isinstance(step, Together):
        return _all(step.flows)
    with dspy.context(**step.settings):
        return step.target(*step.args, **step.kwargs)


async def _ado(step: Step) -> Any:
    if isinstance(step, Together):
        outcomes = await asyncio.gather(*map(arun, step.flows), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes
    with dspy.context(**step.settings):
        if isinstance(step.target, dspy.Module):
            return await step.target.acall(*step.args, **step.kwargs)
        return await asyncio.to_thread(step.target, *step.args, **step.kwargs)


def _all(flows: tuple[Flow[Any], ...]) -> list[Any]:
    """Begin every flow here; those that want something done go on in threads, a single one or a streamed run here."""
    ends: list[Future[Any]] = []
    waiting: list[Callable[[], None]] = []
    for flow in flows:
        # One context per flow, also across threads: DSPy's settings are in it, which threads do not inherit.
        end, context = Future[Any](), contextvars.copy_context()
        step = context.run(_begin, flow, end)
        if step is not None:
            waiting.append(partial(context.run, _finish, flow, step, end))
        ends.append(end)
    if len(waiting) == 1 or dspy.settings.send_stream is not None:  # dspy.streamify can be sent to by this thread only
        for finish in waiting:
            finish()
    elif waiting:
        with ThreadPoolExecutor(len(waiting)) as pool:
            running = [pool.submit(finish) for finish in waiting]
            # Not left to the pool, which joins its threads: before Python 3.13 a Ctrl-C during Thread.join marks the
            # thread as ended while it runs (python/cpython#90882), and a thread in C++ code at exit aborts the process.
            wait(running)
        for done in running:
            done.result()  # nothing but what is no Exception, such as a KeyboardInterrupt in the thread
    return [end.result() for end in ends]


class Stage(dspy.Module, Generic[T]):
    """A DSPy module whose work is a flow: a subclass writes ``steps`` once, and is callable sync and async.

    The inputs are passed on as they come because ``dspy.Module`` calls ``forward`` so; ``steps`` names and types them.
    """

    steps: Callable[..., Flow[T]]

    def forward(self, *args: Any, **kwargs: Any) -> T:
        """Run the steps here."""
        return run(self.steps(*args, **kwargs))

    async def aforward(self, *args: Any, **kwargs: Any) -> T:
        """Run the steps in the event loop."""
        return await arun(self.steps(*args, **kwargs))


class Computed(dspy.Module, Generic[T]):
    """A DSPy module that calls nothing else: a subclass writes ``compute`` once, and is callable sync and async."""

    compute: Callable[..., T]

    def forward(self, *args: Any, **kwargs: Any) -> T:
        """Compute here."""
        return _computed(self.compute, *args, **kwargs)

    async def aforward(self, *args: Any, **kwargs: Any) -> T:
        """Compute in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(_computed, self.compute, *args, **kwargs)
