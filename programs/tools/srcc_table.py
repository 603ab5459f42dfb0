"""The table that tools are chosen by: how well each tool follows each category of distortion, measured as SRCC."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean

import yaml

TABLE = "tool_table.yaml"


@dataclass(frozen=True)
class Agreement:
    """SRCC with the level or the opinion over ``n`` images, positive where the tool's direction is the stated one."""

    srcc: float
    n: int


@cache
def measured() -> Mapping[str, Mapping[str, Agreement]]:
    """By tool and category: the mean SRCC of the table's sources, and the number of images in all of them."""
    table = yaml.safe_load((resources.files("agenticiqa.configs") / TABLE).read_text(encoding="utf-8"))
    result: dict[str, dict[str, Agreement]] = {}
    for category, tools in table["categories"].items():
        for tool, sources in tools.items():
            rows = sources.values()
            result.setdefault(tool, {})[category] = Agreement(
                fmean(row["srcc"] for row in rows), sum(row["n"] for row in rows)
            )
    return result
