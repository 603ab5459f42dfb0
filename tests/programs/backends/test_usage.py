"""Each request is recorded once, by stage."""

import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest

from agenticiqa.programs.backends.run_context import asking, recorded_usage, spend, spending_of
from agenticiqa.programs.backends.usage import Spent, Usage


def test_a_question_has_the_sum_of_its_requests() -> None:
    with recorded_usage() as usage, asking("plan"):
        spend(Spent(calls=1, input_tokens=10, seconds=0.5))
        spend(Spent(calls=1, retries=1, input_tokens=10, output_tokens=4, usd=0.25, seconds=1.0))
    assert usage.to_json() == {
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
    with recorded_usage() as usage:
        for _ in range(2):
            with asking("plan"):
                pass
    assert (usage.stages["plan"].calls, usage.stages["plan"].cached) == (0, 2)


@pytest.mark.parametrize("calls", [0, 1], ids=["out of reach", "unusable"])
def test_a_failed_question_is_recorded_and_not_counted_as_cached(calls: int) -> None:
    def fail() -> None:
        spend(Spent(calls=calls))
        raise ValueError("failed")

    with recorded_usage() as usage, pytest.raises(ValueError, match="failed"), asking("plan"):
        fail()
    assert (usage.stages["plan"].calls, usage.stages["plan"].cached) == (calls, 0)
    assert usage.to_json()["plan"]["usd"] is None, "without a price there is no sum of money"


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
    with recorded_usage() as recorded, asking("plan"), spending_of(lm):
        dspy.settings.usage_tracker.add_usage("openai/test", usage)
    assert recorded.stages["plan"].output_tokens == written


def test_parallel_stages_are_recorded_separately_and_completely() -> None:
    def ask(number: int) -> None:
        with asking(f"stage {number % 3}"):
            spend(Spent(calls=1, input_tokens=1))

    with recorded_usage() as usage, ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(contextvars.copy_context().run, ask, number) for number in range(300)]:
            future.result()
    assert {name: spent.calls for name, spent in usage.stages.items()} == {f"stage {n}": 100 for n in range(3)}


def test_usage_outside_of_a_question_is_not_recorded() -> None:
    with recorded_usage() as usage:
        spend(Spent(calls=1))
    assert usage.stages == {}


def test_two_assessments_are_recorded_separately() -> None:
    with recorded_usage() as outer:
        with recorded_usage() as inner, asking("plan"):
            spend(Spent(calls=1))
        with asking("score"):
            spend(Spent(calls=1))
    assert (list(outer.stages), list(inner.stages)) == (["score"], ["plan"])


def test_the_last_answer_decides_whether_it_was_cut_off() -> None:
    usage = Usage()
    usage.add("plan", Spent(calls=1, cut_off=True))
    assert usage.stages["plan"].cut_off
    usage.add("plan", Spent(calls=1))
    assert not usage.stages["plan"].cut_off
