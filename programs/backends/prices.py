"""Look up the price of a model: the configuration's, or else that in the table of prices that LiteLLM ships.

The table is a file of the installed package, so nothing is fetched. LiteLLM itself is not imported.
"""

import json
import re
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from agenticiqa.configs import Price, StageConfig
from agenticiqa.configs.backend_names import OF_LITELLM

FILE = "model_prices_and_context_window_backup.json"
MILLION = 1_000_000
DATE = re.compile(r"(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)")


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
    provider = next((theirs for theirs, ours in OF_LITELLM.items() if ours == kind), kind)
    tuned_from = ":".join(model.split(":")[:2])  # ft:gpt-4o-2024-08-06, without the names of its owner
    for name in (model, tuned_from, f"{provider}/{model}"):
        row = _table().get(name, {})
        per_token = row.get("input_cost_per_token"), row.get("output_cost_per_token")
        if row.get("litellm_provider") == provider and all(isinstance(usd, int | float) for usd in per_token):
            read, written = (round(usd * MILLION, 6) for usd in per_token)
            return Price(input=read, output=written)
    return None


def price_shown(stage: StageConfig) -> str:
    """Return the price of a stage's own backend and its source, empty if it is unknown.

    The table has no date of its own, so that of its newest model is shown.
    """
    price, source = price_of(stage), "your own"
    if price is None:
        return ""
    known = None if stage.api_base else known_price(stage.backend)
    if known and (stage.price is None or price == known.in_batches()):
        dates = ["-".join(date) for name in _table() for date in DATE.findall(name)]
        source = f"LiteLLM {version('litellm')}, newest model of {max(dates, default='an unknown date')}"
    return f"{price.input:g} and {price.output:g} USD per million tokens ({source})"


@cache
def _table() -> dict[str, Any]:
    """Return LiteLLM's table, by its names of models; empty if the installed version has none in this form."""
    file = Path(str(distribution("litellm").locate_file(f"litellm/{FILE}")))
    table: Any = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return {name: row for name, row in table.items() if isinstance(row, dict)} if isinstance(table, dict) else {}
