"""At most as many threads compute as there are cores, however many images are judged at a time.

Decoding and measuring take a hundred MB and more for a large photo, and no more of it is done in a second by more
threads than cores; waiting for models stays parallel.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore, local

from agenticiqa.programs.backends.cores import available_cores

_here = local()  # by thread, not by context: a context is copied into threads that have no core


@contextmanager
def on_a_core() -> Iterator[None]:
    """Wait for a core, and hold it inside, where nothing may wait for a model or for work that needs a core itself.

    A thread that holds one already goes on with it.
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
