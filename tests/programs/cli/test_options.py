"""How options change a configuration, and which values are refused."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config, PlannerConfig, Price, StageConfig
from agenticiqa.configs.options import KEYS, Option, flat
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.cli.commands import COMMANDS
from agenticiqa.programs.cli.options import config_from, limits_from
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.errors import UserError

PRICE = Price(input=1.0, output=2.0)


def config(planner: Price | None, others: Price | None, **changes: Any) -> Config:
    """Every stage asks a model, at these prices."""
    stage = StageConfig(backend="vllm.test", price=others)
    asking = {"planner": PlannerConfig(backend="vllm.test", price=planner), "executor": stage, "replan": stage}
    return Config(**asking, summarizer=stage, **changes)


def limits(given: Config, max_calls: int | None = None, max_usd: float | None = None, **more: int) -> Limits:
    return limits_from(Namespace(**{"max_calls": max_calls, "max_usd": max_usd, "workers": None, **more}), given)


def test_limits_come_from_the_options() -> None:
    found = limits(config(PRICE, PRICE), 7, 0.5)
    assert (found.max_calls, found.max_usd) == (7, 0.5)
    found = limits(config(None, None), 0)
    assert (found.max_calls, found.max_usd, found.in_flight) == (0, None, 64)
    assert limits(Config(), workers=100).in_flight == 100


def test_a_limit_in_usd_needs_the_price_of_every_stage_that_asks() -> None:
    with pytest.raises(
        UserError, match=r"^--max-usd needs the price of tokens: set price for planner in the file of --config$"
    ):
        limits(config(None, PRICE), max_usd=1.0)
    with pytest.raises(UserError, match="set price for executor, summarizer, replan in"):
        limits(config(PRICE, None), max_usd=1.0)
    assert limits(Config(), max_usd=1.0).max_usd == 1.0, "nothing is asked offline"


def test_a_stage_that_the_profile_omits_needs_no_price() -> None:
    given = config(PRICE, None, mode="fast").model_copy(
        update={"summarizer": StageConfig(backend="vllm.test", price=PRICE)}
    )
    assert limits(given, max_usd=1.0).max_usd == 1.0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--align", "--no-cache"], {"align": True, "cache": False, "max_side": 64}),
        (["--max-side", "99", "--batch"], {"align": False, "cache": False, "max_side": 99}),
        (["--mode", "fast"], {"align": False, "cache": True, "max_side": 64, "mode": "fast"}),
    ],
)
def test_an_option_sets_its_key_and_no_other(options: list[str], expected: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("max_side: 64")
    args = parse(["assess", "a.jpg", "--config", str(tmp_path / "mine.yaml"), *options], COMMANDS)
    assert expected.items() <= config_from(args).model_dump().items()


def test_assess_has_an_option_for_every_such_key() -> None:
    taken = {option.name for option in flat(COMMANDS["assess"].options) if option.key}
    declared = {
        name for name, field in Config.model_fields.items() if any(isinstance(m, Option) for m in field.metadata)
    }
    declared.add("fusion")  # the option names a file, the key may also be a section
    assert taken == declared == {option.name for option in KEYS}
