"""Compute a thing once, however many threads want it at the same time."""

from collections.abc import Callable, MutableMapping
from concurrent.futures import Future
from threading import Lock
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def once(known: MutableMapping[K, Future[T]], lock: Lock, key: K, compute: Callable[[], T]) -> T:
    """What is known of the key; else it is computed here, and whoever asks meanwhile waits for it.

    A failure is raised in all who wait, and forgotten: the next one tries anew. ``lock`` guards ``known``.
    """
    with lock:
        future = known.get(key)
        mine = future is None
        if future is None:
            future = known[key] = Future()
    if mine:
        try:
            future.set_result(compute())
        except BaseException as error:  # also an interrupt: threads that wait for the result must not hang
            with lock:
                del known[key]
            future.set_exception(error)
    return future.result()
