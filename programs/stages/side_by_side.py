"""The threads of a run: a call beside another, a module that is awaited, and as many threads at work as cores."""

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
_here = local()  # by thread, not by context: a context is copied into threads that have no core


@contextmanager
def beside(second: Callable[[], A] | None) -> Iterator[Future[A]]:
    """Run ``second`` in a thread while the body runs, and wait for it; the future given has its result afterwards.

    Without one, the result is not there. If both raise an exception, it is the body's. Use it only if both have
    something to do: a thread is not free.
    """
    if second is None:
        yield Future()
        return
    if dspy.settings.send_stream is not None:  # dspy.streamify can be sent to by this thread only
        later: Future[A] = Future()
        yield later
        later.set_result(second())
        return
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(copy_context().run, second)  # DSPy's settings are in the context
        try:
            yield running
        finally:
            # Not left to the pool, which joins its thread: before Python 3.13 a Ctrl-C during Thread.join marks the
            # thread as ended while it runs (python/cpython#90882), and a thread in C++ code at exit aborts the process.
            wait([running])
    running.result()


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, in the caller's context; at most ``MOST_AWAITED`` at a time in an event loop.

    As ``dspy.asyncify``: whoever stops waiting leaves the call to itself, and its thread ends with it.
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
        # As DSPy's users replace a signature; here it would be one more predictor, that nobody asks.
        if name == "predict" and hasattr(self, "ask"):
            raise StateError(f"{type(self).__name__} asks by its attribute ask: set ask.predict in place of predict")
        super().__setattr__(name, value)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module in a thread."""
        return await in_thread(self, *args, **kwargs)


@contextmanager
def cpu_slot() -> Iterator[None]:
    """Wait for a core, and hold it inside, where nothing may wait for a model or for work that needs a core itself.

    Decoding and measuring take a hundred MB and more for a large photo, and more threads than cores do no more of it in
    a second, however many images are judged at a time. A thread that holds a core already goes on with it.
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
