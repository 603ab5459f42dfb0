"""Results that belong to one object and are computed once, even if several threads request them at the same time."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Results by key, kept for as long as the memo lives. Unpickled or deeply copied it is empty.

    Each type of result needs its own kind of key, such as ``("crop", box)``.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._results: dict[Hashable, Future[Any]] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result for ``key``: the kept one, or what ``compute`` returns, which is then kept.

        ``compute`` runs in the thread that asks first, without a lock held; other threads that ask for the same key
        wait for it. If it raises, all of them get that error and nothing is kept, so that the next caller tries again.
        ``compute`` must not ask for its own key.
        """
        own: Future[T] = Future()
        with self._lock:
            future = self._results.setdefault(key, own)
        if future is own:
            try:
                future.set_result(compute())
            except BaseException as error:  # even an interrupt, because threads that wait for the result must not hang
                with self._lock:
                    del self._results[key]
                future.set_exception(error)
        result: T = future.result()
        return result

    def __reduce__(self) -> tuple[type["Memo"], tuple[()]]:
        return type(self), ()
