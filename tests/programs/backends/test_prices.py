"""Known prices of models: LiteLLM's table as installed, and what replaces it."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from agenticiqa.configs import Price, StageConfig
from agenticiqa.programs.backends import prices
from agenticiqa.programs.backends.connect import stage_models
from agenticiqa.programs.backends.prices import price_of, price_shown

ROW = {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 0}


@pytest.mark.parametrize(
    ("backend", "usd"),
    [
        ("openai.gpt-4o", (2.5, 10)),
        ("openai.gpt-4o-2024-08-06", (2.5, 10)),
        ("openai.ft:gpt-4o-2024-08-06:acme::id", (3.75, 15)),
        ("anthropic.claude-sonnet-4-5", (3, 15)),
        ("google.gemini-2.5-flash", (0.3, 2.5)),
        ("openai.no-such-model", None),
        ("openai.claude-sonnet-4-5", None),  # another provider's model
        ("vllm.gpt-4o", None),
        ("offline", None),
    ],
)
def test_the_price_of_a_model_at_its_provider_is_known(backend: str, usd: tuple[float, float] | None) -> None:
    price = price_of(StageConfig(backend=backend))
    assert (price and (price.input, price.output)) == usd


def test_an_own_price_comes_first_and_a_gateway_has_none() -> None:
    own = Price(input=1, output=2)
    stage = StageConfig(backend="openai.gpt-4o", price=own)
    assert (price_of(stage), price_shown(stage)) == (own, "1 and 2 USD per million tokens (your own)")
    same = StageConfig(backend="openai.gpt-4o", price=Price(input=2.5, output=10))
    assert price_shown(same) == "2.5 and 10 USD per million tokens (your own)"
    at_gateway = StageConfig(backend="openai.gpt-4o", api_base="https://gw.example/v1")
    assert (price_of(at_gateway), price_shown(at_gateway)) == (None, "")


@pytest.mark.parametrize(
    ("fallback", "usd"),
    [
        ({"fallback_backend": "openai.gpt-4o"}, 2.5),
        ({"fallback_backend": "openai.gpt-4o-mini"}, 1),  # the same model
        ({"fallback_backend": "openai.no-such-model"}, 1),
        ({"fallback_backend": "openai.gpt-4o", "fallback_api_base": "https://gw.example/v1"}, 1),
    ],
)
def test_a_fallback_has_its_own_price_if_it_is_known_or_else_that_of_the_section(
    fallback: dict[str, str], usd: float
) -> None:
    first, second = stage_models(StageConfig(backend="openai.gpt-4o-mini", price=Price(input=1, output=2), **fallback))
    assert [price and price.input for price in map(price_of, (first, second))] == [1, usd]
    assert ("LiteLLM" in price_shown(second)) == (usd == 2.5)


def test_the_source_has_the_version_of_the_table_and_the_date_of_its_newest_model() -> None:
    shown = price_shown(StageConfig(backend="openai.gpt-4o"))
    begin, _, date = shown.removesuffix(")").rpartition(" ")
    assert begin == f"2.5 and 10 USD per million tokens (LiteLLM {version('litellm')}, newest model of"
    assert "2024-08-06" < date < "2100"
    halved = StageConfig(backend="openai.gpt-4o", price=Price(input=2.5, output=10).in_batches())
    assert price_shown(halved) == shown.replace("2.5 and 10", "1.25 and 5")


def test_a_litellm_without_the_table_knows_no_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "litellm-9.dist-info"
    for folder in (installed, tmp_path / "litellm"):
        folder.mkdir()
    (installed / "METADATA").write_text("Name: litellm")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(prices, "_table", prices._table.__wrapped__)
    assert price_of(StageConfig(backend="openai.gpt-4o")) is None
    (tmp_path / "litellm" / prices.FILE).write_text(
        json.dumps({"gpt-4o": {"litellm_provider": "openai", "input_cost_per_token": 1e-6}})
    )
    assert price_of(StageConfig(backend="openai.gpt-4o")) is None, "half a price is none"
    other_layouts = [
        ["gpt-4o"],
        {"gpt-4o": [1, 2]},
        {"gpt-4o": {**ROW, "input_cost_per_token": "1e-6"}},
        {"gpt-4o": ROW},
    ]
    for layout, known in zip(other_layouts, (False, False, False, True), strict=True):
        (tmp_path / "litellm" / prices.FILE).write_text(json.dumps(layout))
        assert bool(price_of(StageConfig(backend="openai.gpt-4o"))) == known, layout
