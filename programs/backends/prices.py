"""Look up the price of a model: the configuration's, or else that in the table of prices that LiteLLM ships.

The table is a file of the installed package, so nothing is fetched. LiteLLM itself is not imported.
"""

import json
import re
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agenticiqa.configs import Price, StageConfig
from agenticiqa.configs.backend_names import PROVIDER_NAMES

FILE = "model_prices_and_context_window_backup.json"
MILLION = 1_000_000


def price_of(stage: StageConfig) -> Price | None:
    """Return the price of a stage's own backend; ``None`` if it is unknown.

    A known price is that of the provider's own address, because a gateway may have other prices.
    """
    if stage.price is not None or stage.api_base is not None:
        return stage.price
    return known_price(stage.backend)


def known_price(backend: str) -> Price | None:
    """Return the price of a backend, named ``provider.model``, in LiteLLM's table; ``None`` if it is not there."""
    kind, _, model = backend.partition(".")
    tuned_from = ":".join(model.split(":")[:2])  # ft:gpt-4o-2024-08-06, without the names of its owner
    spelled = [name for name, provider in PROVIDER_NAMES.items() if provider == kind]
    for name in (model, tuned_from, *(f"{provider}/{model}" for provider in spelled)):
        row = _table().get(name, {})
        per_token = row.get("input_cost_per_token"), row.get("output_cost_per_token")
        if row.get("litellm_provider") in spelled and all(isinstance(usd, int | float) for usd in per_token):
            read, written = (round(usd * MILLION, 6) for usd in per_token)
            return Price(input=read, output=written)
    return None


def no_price(stage: StageConfig) -> str:
    """Return the backend of a stage without a price, and how to set it."""
    at_home = known_price(stage.backend)
    example = f"{at_home.input:g},{at_home.output:g} as at its provider" if at_home else "2.5,10"
    return (
        f"{stage.backend}: give it with --price IN,OUT (USD per million tokens, such as {example}), or as price in the "
        "configuration"
    )


def price_shown(stage: StageConfig) -> str:
    """Return the price of a stage's own backend and its source, empty if it is unknown."""
    price = price_of(stage)
    if price is None:
        return ""
    known = None if stage.api_base else known_price(stage.backend)
    source = table_shown() if known and price in (known, known.in_batches()) else "your own"
    return f"{price.input:g} and {price.output:g} USD per million tokens ({source})"


def table_shown() -> str:
    """Return which table of prices is used, with the date of its newest model, because it has no date of its own."""
    dates = ["-".join(date) for name in _table() for date in re.findall(r"(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)", name)]
    return f"LiteLLM {version('litellm')}, newest model of {max(dates, default='unknown date')}"


@cache
def _table() -> dict[str, Any]:
    """Return LiteLLM's table, by its names of models; empty if the installed version has none in this form."""
    package = find_spec("litellm")
    places = (package and package.submodule_search_locations) or ()
    files = [file for place in places if (file := Path(place) / FILE).is_file()]
    table: Any = json.loads(files[0].read_text("utf-8")) if files else {}
    return {name: row for name, row in table.items() if isinstance(row, dict)} if isinstance(table, dict) else {}
