"""The ledger records each request once, by stage; limits are not exceeded, and an interruption ends every wait."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest

from agenticiqa.programs.backends.ledger import (
    Halted,
    Ledger,
    LimitReached,
    Limits,
    Spent,
    asking,
    current,
    keeping,
    spend,
    spending_of,
    within,
)
from support.engine import ScriptedEngine


def test_a_question_has_the_sum_of_its_requests() -> None:
    with keeping() as ledger, asking("plan"):
        spend(Spent(calls=1, input_tokens=10, seconds=0.5))
        spend(Spent(calls=1, retries=1, input_tokens=10, output_tokens=4, usd=0.25, seconds=1.0))
    assert ledger.to_json() == {
        "plan": {
            "calls": 2,
            "cached": 0,
            "retries": 1,
            "input_tokens": 20,
            "output_tokens": 4,
            "usd": 0.25,
            "seconds": 1.5,
        }
    }


def test_an_answer_without_a_request_counts_as_cached() -> None:
    with keeping() as ledger:
        for _ in range(2):
            with asking("plan"):
                pass
    assert (ledger.stages["plan"].calls, ledger.stages["plan"].cached) == (0, 2)


@pytest.mark.parametrize("calls", [0, 1], ids=["out of reach", "unusable"])
def test_a_failed_question_is_recorded_and_not_counted_as_cached(calls: int) -> None:
    def fail() -> None:
        spend(Spent(calls=calls))
        raise ValueError("failed")

    with keeping() as ledger, pytest.raises(ValueError, match="failed"), asking("plan"):
        fail()
    assert (ledger.stages["plan"].calls, ledger.stages["plan"].cached) == (calls, 0)
    assert ledger.to_json()["plan"]["usd"] is None, "without a price there is no sum of money"


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, 30),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, 5),
        ({"prompt_tokens": 10, "completion_tokens": 5}, 5),
        ({"completion_tokens": 5, "total_tokens": 40}, 5),
        ({"prompt_tokens": 10, "completion_tokens": None, "total_tokens": 40}, 30),
    ],
)
def test_hidden_reasoning_of_a_callers_own_model_counts_as_output(usage: dict[str, Any], written: int) -> None:
    lm = dspy.LM("openai/test", api_key="k")
    with keeping() as ledger, asking("plan"), spending_of(lm):
        dspy.settings.usage_tracker.add_usage("openai/test", usage)
    assert ledger.stages["plan"].output_tokens == written


def test_parallel_stages_are_recorded_separately_and_completely() -> None:
    def ask(number: int) -> None:
        with asking(f"stage {number % 3}"):
            spend(Spent(calls=1, input_tokens=1))

    with keeping() as ledger, ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(contextvars.copy_context().run, ask, number) for number in range(300)]:
            future.result()
    assert {name: spent.calls for name, spent in ledger.stages.items()} == {f"stage {n}": 100 for n in range(3)}


def test_usage_outside_of_a_question_is_not_recorded() -> None:
    with keeping() as ledger:
        spend(Spent(calls=1))
    assert ledger.stages == {}


def test_two_ledgers_are_independent() -> None:
    with keeping() as outer:
        with keeping() as inner, asking("plan"):
            spend(Spent(calls=1))
        with asking("score"):
            spend(Spent(calls=1))
    assert (list(outer.stages), list(inner.stages)) == (["score"], ["plan"])


def test_the_last_answer_decides_whether_it_was_cut_off() -> None:
    ledger = Ledger()
    ledger.add("plan", Spent(calls=1, cut_off=True))
    assert ledger.stages["plan"].cut_off
    ledger.add("plan", Spent(calls=1))
    assert not ledger.stages["plan"].cut_off


def test_without_limits_everything_is_admitted() -> None:
    limits = current()
    for _ in range(100):
        limits.admit(None)
        limits.settle(None, None)
    assert current() is not limits, "each caller without a run has one of its own"


def test_calls_are_counted_and_the_next_one_is_refused() -> None:
    limits = Limits(max_calls=3)
    for _ in range(3):
        limits.admit(None)
        limits.settle(None, None)
    with pytest.raises(LimitReached, match="limit of 3 calls"):
        limits.admit(None)
    assert limits.calls == 3


def test_the_limit_may_be_zero_calls() -> None:
    with pytest.raises(LimitReached):
        Limits(max_calls=0).admit(None)


def test_many_threads_together_do_not_exceed_a_limit() -> None:
    limits = Limits(max_calls=50)

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
    limits = Limits(max_usd=1.0)
    for _ in range(8):  # each could take 0.3, and takes 0.1
        limits.admit(0.3)
        limits.settle(0.3, 0.1)
    with pytest.raises(LimitReached, match=r"0\.3000 USD.*limit of 1 USD \(8 calls, 0\.8000 USD spent\)"):
        limits.admit(0.3)
    assert limits.usd == pytest.approx(0.8)


def test_a_call_that_does_not_fit_waits_for_the_real_price_of_another() -> None:
    limits = Limits(max_usd=1.0)
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
        Limits(max_usd=1.0).admit(None)


def test_after_an_interruption_nothing_is_admitted_and_waits_end() -> None:
    limits = Limits(max_usd=1.0)
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
    with within(Limits(max_calls=1)) as limits:
        assert current() is limits
        context = contextvars.copy_context()
    assert current() is not limits
    assert context.run(current) is limits


def test_requests_in_threads_of_dspy_count_for_every_model() -> None:
    """``dspy.Parallel`` copies DSPy's settings into its threads, but no Python context."""
    engines = [ScriptedEngine(['{"answer": "yes"}']) for _ in range(2)]
    ours, other = dspy.LM("test/ours", engine=engines[0]), dspy.LM("test/other", engine=engines[1])
    engines[0].counts_requests = True
    with within(Limits()) as limits, within(Limits()) as inner, dspy.context(lm=other, adapter=dspy.JSONAdapter()):
        ask = dspy.Predict("question -> answer")
        dspy.Parallel(num_threads=4, disable_progress_bar=True)([(ask, {"question": str(n)}) for n in range(8)])
        ask(question="1")  # from the cache
        ask(question="1", lm=ours)  # which counts by itself
    assert (len(engines[1].requests), inner.calls, limits.calls) == (8, 8, 0)
