"""Limits are not exceeded, and an interruption ends every wait."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest

from agenticiqa.programs.backends.limits import Halted, LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.run_context import current, within
from support.engine import ScriptedEngine


def test_without_limits_everything_is_admitted() -> None:
    limits = current().limits
    for _ in range(100):
        limits.admit(None)
        limits.settle(None, None)
    assert current().limits is not limits, "each caller without a run has one of its own"


def test_calls_are_counted_and_the_next_one_is_refused() -> None:
    limits = RunLimits(Limits(max_calls=3))
    for _ in range(3):
        limits.admit(None)
        limits.settle(None, None)
    with pytest.raises(LimitReached, match="limit of 3 calls"):
        limits.admit(None)
    assert limits.own.calls == 3


def test_the_limit_may_be_zero_calls() -> None:
    with pytest.raises(LimitReached):
        RunLimits(Limits(max_calls=0)).admit(None)


def test_many_threads_together_do_not_exceed_a_limit() -> None:
    limits = RunLimits(Limits(max_calls=50))

    def ask(_: int) -> int:
        try:
            limits.admit(None)
        except LimitReached:
            return 0
        limits.settle(None, None)
        return 1

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(200))) == 50


def test_requests_are_admitted_by_the_highest_price_and_recorded_with_the_real_one() -> None:
    limits = RunLimits(Limits(max_usd=1.0))
    for _ in range(8):  # each could take 0.3, and takes 0.1
        limits.admit(0.3)
        limits.settle(0.3, 0.1)
    with pytest.raises(LimitReached, match=r"0\.3000 USD.*limit of 1 USD \(8 calls, 0\.8000 USD spent\)"):
        limits.admit(0.3)
    assert limits.own.usd == pytest.approx(0.8)


def test_a_call_that_does_not_fit_waits_for_the_real_price_of_another() -> None:
    limits = RunLimits(Limits(max_usd=1.0))
    limits.admit(0.9)
    admitted = threading.Event()

    def ask() -> None:
        limits.admit(0.9)
        admitted.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert not admitted.wait(0.05)
    limits.settle(0.9, 0.05)
    assert admitted.wait(5)
    thread.join()


def test_a_limit_in_usd_needs_a_price() -> None:
    with pytest.raises(LimitReached, match="price"):
        RunLimits(Limits(max_usd=1.0)).admit(None)


def test_after_an_interruption_nothing_is_admitted_and_waits_end() -> None:
    limits = RunLimits(Limits(max_usd=1.0))
    limits.admit(0.9)
    refused: list[Exception] = []

    def ask() -> None:
        try:
            limits.admit(0.9)
        except Halted as error:
            refused.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    limits.halt()
    thread.join(5)
    assert len(refused) == 1
    assert limits.halted.wait(0), "whoever waits for another attempt wakes up"


def test_the_limits_of_a_run_apply_inside_it_only() -> None:
    with within(RunLimits(Limits(max_calls=1))) as limits:
        assert current().limits is limits
        context = contextvars.copy_context()
    assert current().limits is not limits
    assert context.run(current).limits is limits


def test_requests_in_threads_of_dspy_count_for_every_model() -> None:
    """``dspy.Parallel`` copies DSPy's settings into its threads, but no Python context."""
    engines = [ScriptedEngine(['{"answer": "yes"}']) for _ in range(2)]
    ours, other = dspy.LM("test/ours", engine=engines[0]), dspy.LM("test/other", engine=engines[1])
    engines[0].counts_requests = True
    settings = dspy.context(lm=other, adapter=dspy.JSONAdapter())
    with within(RunLimits()) as limits, within(RunLimits()) as inner, settings:
        ask = dspy.Predict("question -> answer")
        dspy.Parallel(num_threads=4, disable_progress_bar=True)([(ask, {"question": str(n)}) for n in range(8)])
        ask(question="1")  # from the cache
        ask(question="1", lm=ours)  # which counts by itself
    assert (len(engines[1].requests), inner.own.calls, limits.own.calls) == (8, 8, 0)
