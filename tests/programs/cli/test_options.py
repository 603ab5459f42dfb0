"""What options make of a configuration, and what they refuse."""

from argparse import Namespace
from typing import Any

import pytest

from agenticiqa.configs import Config, PlannerConfig, Price, StageConfig
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.cli.options import limits_from, models_from
from agenticiqa.programs.errors import UserError

PRICE = Price(input=1.0, output=2.0)


def config(planner: Price | None, others: Price | None, **changes: Any) -> Config:
    """Every stage asks a model, at these prices."""
    stage = StageConfig(backend="vllm.test", price=others)
    asking = {"planner": PlannerConfig(backend="vllm.test", price=planner), "executor": stage, "replan": stage}
    return Config(**asking, summarizer=stage, **changes)


def limits(given: Config, max_calls: int | None = None, max_usd: float | None = None, **more: int) -> Limits:
    return limits_from(Namespace(**{"max_calls": max_calls, "max_usd": max_usd, "workers": None, **more}), given)


def test_limits_are_those_given() -> None:
    found = limits(config(PRICE, PRICE), 7, 0.5)
    assert (found.max_calls, found.max_usd) == (7, 0.5)
    found = limits(config(None, None), 0)
    assert (found.max_calls, found.max_usd, found.in_flight) == (0, None, 64)
    assert limits(Config(), workers=100).in_flight == 100


def test_a_limit_in_usd_needs_the_price_of_every_stage_that_asks() -> None:
    with pytest.raises(UserError, match=r"^--max-usd needs the price of tokens: set price for planner in --config$"):
        limits(config(None, PRICE), max_usd=1.0)
    with pytest.raises(UserError, match="set price for executor, summarizer, replan in"):
        limits(config(PRICE, None), max_usd=1.0)
    assert limits(Config(), max_usd=1.0).max_usd == 1.0, "nothing is asked offline"


def test_a_stage_that_the_profile_leaves_out_needs_no_price() -> None:
    given = config(PRICE, None, profile="fast").model_copy(
        update={"summarizer": StageConfig(backend="vllm.test", price=PRICE)}
    )
    assert limits(given, max_usd=1.0).max_usd == 1.0


@pytest.mark.parametrize(("name", "given"), [("--max-calls", {"max_calls": -1}), ("--max-usd", {"max_usd": -0.1})])
def test_a_negative_limit_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{name} must be at least 0, got -"):
        limits(config(PRICE, PRICE), **given)


def test_the_model_of_a_python_program_is_not_asked_from_the_shell() -> None:
    with pytest.raises(UserError, match=r"^backend dspy asks the model of a Python program: here name one"):
        models_from(Namespace(backend="dspy", api_base=None, config=None))
