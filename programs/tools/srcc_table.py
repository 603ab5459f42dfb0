"""The table that tools are chosen by: how well each tool follows each category of distortion, measured as SRCC."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean
from typing import Any

from agenticiqa.programs.tools.calibration import read_yaml

TABLE = "tool_table.yaml"
OVERALL = "Overall"
LEVELS_SOURCE = "distortion_levels"  # how the names of sources begin that are no data sets, also with ", held out"


@dataclass(frozen=True)
class Agreement:
    """SRCC with the level or the opinion over ``n`` images, positive where the tool's direction is the stated one."""

    srcc: float
    n: int


@cache
def opinion_srcc(tool: str) -> float | None:
    """The tool's SRCC with the opinion scores of the labeled data sets, mean over their images; ``None`` if unknown."""
    rows = _table()["categories"].get(OVERALL, {}).get(tool, {})
    sets = [row for source, row in rows.items() if not source.startswith(LEVELS_SOURCE)]
    return sum(row["srcc"] * row["n"] for row in sets) / sum(row["n"] for row in sets) if sets else None


@cache
def measured() -> Mapping[str, Mapping[str, Agreement]]:
    """By tool and category: the mean SRCC of the table's sources, and the number of images in all of them."""
    result: dict[str, dict[str, Agreement]] = {}
    for category, tools in _table()["categories"].items():
        for tool, sources in tools.items():
            rows = sources.values()
            result.setdefault(tool, {})[category] = Agreement(
                fmean(row["srcc"] for row in rows), sum(row["n"] for row in rows)
            )
    return result


@cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_yaml((resources.files("agenticiqa.configs") / TABLE).read_text(encoding="utf-8"))
    return table
