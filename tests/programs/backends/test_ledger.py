"""The ledger has what was asked, by stage, once."""

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

from agenticiqa.programs.backends.ledger import Ledger, Spent, asking, keeping, spend


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


def test_an_answer_without_a_request_is_from_the_cache() -> None:
    with keeping() as ledger:
        for _ in range(2):
            with asking("plan"):
                pass
    assert (ledger.stages["plan"].calls, ledger.stages["plan"].cached) == (0, 2)


def test_a_question_that_fails_is_entered_and_is_no_answer_from_the_cache() -> None:
    with keeping() as ledger, pytest.raises(ValueError, match="out of reach"), asking("plan"):
        raise ValueError("out of reach")
    assert (ledger.stages["plan"].calls, ledger.stages["plan"].cached) == (0, 0)


def test_a_question_whose_answer_is_unusable_is_entered_with_what_it_took() -> None:
    def unusable() -> None:
        spend(Spent(calls=1))
        raise ValueError("no JSON")

    with keeping() as ledger, pytest.raises(ValueError, match="no JSON"), asking("plan"):
        unusable()
    assert (ledger.stages["plan"].calls, ledger.stages["plan"].cached) == (1, 0)


def test_without_a_price_there_is_no_sum_of_money() -> None:
    with keeping() as ledger, asking("plan"):
        spend(Spent(calls=1))
    assert ledger.to_json()["plan"]["usd"] is None


def test_stages_side_by_side_keep_apart_and_nothing_is_lost() -> None:
    def ask(number: int) -> None:
        with asking(f"stage {number % 3}"):
            spend(Spent(calls=1, input_tokens=1))

    with keeping() as ledger, ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(contextvars.copy_context().run, ask, number) for number in range(300)]:
            future.result()
    assert {name: spent.calls for name, spent in ledger.stages.items()} == {f"stage {n}": 100 for n in range(3)}


def test_what_is_spent_outside_of_any_question_is_nobodys() -> None:
    with keeping() as ledger:
        spend(Spent(calls=1))
    assert ledger.stages == {}


def test_two_ledgers_know_nothing_of_each_other() -> None:
    with keeping() as outer:
        with keeping() as inner, asking("plan"):
            spend(Spent(calls=1))
        with asking("score"):
            spend(Spent(calls=1))
    assert (list(outer.stages), list(inner.stages)) == (["score"], ["plan"])


def test_the_last_answer_tells_whether_it_was_cut_off() -> None:
    ledger = Ledger()
    ledger.add("plan", Spent(calls=1, cut_off=True))
    assert ledger.stages["plan"].cut_off
    ledger.add("plan", Spent(calls=1))
    assert not ledger.stages["plan"].cut_off
