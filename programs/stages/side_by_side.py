"""Run calls in parallel threads, await modules, and limit the number of computing threads to the cores."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, partial
from threading import BoundedSemaphore, local
from typing import Any, ParamSpec, TypeVar

import anyio.lowlevel
import anyio.to_thread
import dspy

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.errors import StateError

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

MOST_AWAITED = 64  # questions in flight; DSPy's own pool has 8 threads, and its ``async_max_workers`` may ask for more

_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("agenticiqa_awaited")  # one per loop
_here = local()  # a value per thread: contexts are copied into threads that hold no core


@contextmanager
def beside(second: Callable[[], A] | None) -> Iterator[Future[A]]:
    """Run ``second`` in a thread while the body runs, and wait for it; the yielded future then has its result.

    If ``second`` is ``None``, the future has no result. If both raise an exception, the body's is raised. Use it only
    if both have work to do, because a thread has a cost.
    """
    if second is None:
        yield Future()
        return
    if dspy.settings.send_stream is not None:  # dspy.streamify receives only from this thread
        later: Future[A] = Future()
        yield later
        later.set_result(second())
        return
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(copy_context().run, second)  # DSPy's settings are in the context
        try:
            yield running
        finally:
            # The pool would join its thread. Before Python 3.13 a Ctrl-C during Thread.join marks a running thread as
            # ended (python/cpython#90882), and a thread that runs C++ code at exit aborts the process.
            wait([running])
    running.result()


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, in the caller's context; at most ``MOST_AWAITED`` at a time in an event loop.

    As with ``dspy.asyncify``, canceling the wait does not stop the call; its thread ends when the call returns. That
    function has one limit for all event loops, and calls of loops in several threads then wait for each other forever.
    """
    return await anyio.to_thread.run_sync(
        partial(function, *args, **kwargs), abandon_on_cancel=True, limiter=_awaited()
    )


def _awaited() -> anyio.CapacityLimiter:
    most = max(MOST_AWAITED, dspy.settings.async_max_workers)
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(most)
        _limiter.set(limiter)
    limiter.total_tokens = most
    return limiter


class StageModule(dspy.Module):
    """A ``dspy.Module`` that can be awaited without a second, async ``forward``."""

    def __setattr__(self, name: str, value: Any) -> None:
        # DSPy users replace a signature like this; here it would add a predictor that is never called.
        if name == "predict" and hasattr(self, "ask"):
            raise StateError(f"{type(self).__name__} has no predictor of its own; set ask.predict instead of predict")
        super().__setattr__(name, value)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module in a thread.

        Args:
            *args: The module's arguments.
            **kwargs: The module's keyword arguments.

        Returns:
            What the module returns.
        """
        return await in_thread(self, *args, **kwargs)


@contextmanager
def cpu_slot() -> Iterator[None]:
    """Wait for a core and hold it inside; the body must not wait for a model or for other work that needs a core.

    Decoding and measuring a large photo take 100 MB and more, and more threads than cores do not increase the
    throughput. A thread that already holds a core keeps it.
    """
    if getattr(_here, "computes", False):
        yield
        return
    with _cores():
        _here.computes = True
        try:
            yield
        finally:
            _here.computes = False


@cache
def _cores() -> BoundedSemaphore:
    return BoundedSemaphore(available_cores())
