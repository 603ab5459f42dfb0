"""Results of an image are computed once and kept as long as the image."""

import copy
import gc
import pickle
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.memo import Memo
from support.distortion_levels import scene
from support.images import loaded


def test_a_key_is_computed_once_and_others_separately() -> None:
    memo, calls = Memo(), []
    assert [memo.once("a", lambda: calls.append("a") or 1) for _ in range(3)] == [1, 1, 1]
    assert memo.once("b", lambda: calls.append("b") or 2) == 2
    assert calls == ["a", "b"]
    assert [memo.once("c", lambda: calls.append("c")) for _ in range(2)] == [None, None], "None is a result, too"
    assert calls == ["a", "b", "c"]


def test_a_second_thread_waits_for_the_first_ones_result() -> None:
    memo, calls, started, finish = Memo(), [], threading.Event(), threading.Event()

    def slow() -> object:
        calls.append(1)
        started.set()
        assert finish.wait(10)
        return object()

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(memo.once, "a", slow)
        assert started.wait(10)
        others = [pool.submit(memo.once, "a", slow) for _ in range(7)]
        assert memo.once("b", lambda: 2) == 2, "another key does not wait"
        assert not any(other.done() for other in others)
        finish.set()
        assert all(other.result(10) is first.result(10) for other in others)
    assert calls == [1]


def test_a_failure_reaches_all_waiting_threads_and_is_not_kept() -> None:
    memo, together = Memo(), threading.Barrier(4)

    def failing() -> None:
        time.sleep(0.2)
        raise ZeroDivisionError

    def ask() -> None:
        together.wait(10)
        memo.once("a", failing)

    with ThreadPoolExecutor(4) as pool:
        for asked in [pool.submit(ask) for _ in range(4)]:
            with pytest.raises(ZeroDivisionError):
                asked.result(10)
    assert memo.once("a", lambda: 3) == 3

    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memo.once("b", interrupted)
    assert memo.once("b", lambda: 4) == 4


def test_a_copy_of_a_loaded_image_has_an_empty_memo() -> None:
    image = loaded(scene(32, 32))
    assert image.memo.once("a", lambda: 1) == 1
    for other in (
        image.changed(source="other"),
        copy.deepcopy(image),
        pickle.loads(pickle.dumps(image)),
    ):
        assert other.memo is not image.memo
        assert other.memo.once("a", lambda: 2) == 2
    assert image.memo.once("a", lambda: 3) == 1
    assert "memo" not in repr(image)


def test_kept_results_do_not_outlive_the_image() -> None:
    def kept_of(image: LoadedImage) -> list[weakref.ref[LoadedImage]]:
        part = image.memo.once("part", lambda: image.changed(source="part"))
        return [weakref.ref(image), weakref.ref(part)]

    ended = kept_of(loaded(scene(32, 32)))
    gc.collect()
    assert [reference() for reference in ended] == [None, None]
