"""No more threads compute at a time than there are cores; what waits for a model is not held back."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.stages.computing import on_a_core
from agenticiqa.programs.stages.flow import Computed, Flow, arun, call, compute, run, together


class Watched:
    """A function that takes 10 ms and sees how many threads are in it."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.01)
        with self._lock:
            self.now -= 1


class Module(Computed[None]):
    def __init__(self, compute: Watched) -> None:
        super().__init__()
        self.compute = compute


def steps(watched: Watched) -> Flow[None]:
    yield from together(compute(watched), call(Module(watched)))


MANY = 4 * available_cores() + 4


def test_no_more_threads_compute_than_there_are_cores() -> None:
    watched = Watched()
    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(lambda _: run(steps(watched)), range(MANY)))
    assert 1 <= watched.most <= available_cores()


def test_nor_do_tasks() -> None:
    watched = Watched()

    async def main() -> None:
        await asyncio.gather(*(arun(steps(watched)) for _ in range(MANY)))

    asyncio.run(asyncio.wait_for(main(), 30))
    assert 1 <= watched.most <= available_cores()


def test_what_only_waits_has_no_part_in_it() -> None:
    together_here = threading.Barrier(MANY)  # broken unless all of them wait at the same time

    def wait(_: int) -> Flow[None]:
        yield from call(lambda: together_here.wait(20))

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(lambda number: run(wait(number)), range(MANY)))


def test_what_computes_within_a_computation_does_not_wait_for_itself() -> None:
    def nested() -> str:
        with on_a_core(), on_a_core():
            return "done"

    with ThreadPoolExecutor(MANY) as pool:
        assert set(pool.map(lambda _: nested(), range(MANY))) == {"done"}


def test_an_error_gives_the_core_back() -> None:
    for _ in range(MANY):
        with pytest.raises(KeyError), on_a_core():
            raise KeyError
    with on_a_core():
        assert Path.cwd()
