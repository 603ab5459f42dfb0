"""How well each tool was measured to follow each category of distortion: the table that tools are chosen by."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean

import yaml

TABLE = "tool_table.yaml"


@dataclass(frozen=True)
class Agreement:
    """SRCC with the level or the opinion, positive where the tool moves as its card says, over ``n`` images."""

    srcc: float
    n: int


@cache
def measured() -> Mapping[str, Mapping[str, Agreement]]:
    """By tool and category: the mean of the table's sources, and how many images there were in all of them."""
    table = yaml.safe_load((resources.files("agenticiqa.configs") / TABLE).read_text(encoding="utf-8"))
    result: dict[str, dict[str, Agreement]] = {}
    for category, tools in table["categories"].items():
        for tool, sources in tools.items():
            rows = sources.values()
            result.setdefault(tool, {})[category] = Agreement(
                fmean(row["srcc"] for row in rows), sum(row["n"] for row in rows)
            )
    return result
