"""Read the table for choosing tools: how well each tool follows each category of distortion, as SRCC."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean
from typing import Any

from agenticiqa.programs.tools.tool_curves import read_yaml
from agenticiqa.signatures.categories import OVERALL

TABLE = "tool_table.yaml"
LEVELS_SOURCE = "distortion_levels"  # prefix of sources that are not data sets, also with ", held out"


@dataclass(frozen=True)
class Agreement:
    """SRCC with the level or the MOS over ``n`` images, positive where the tool's direction is the stated one."""

    srcc: float
    n: int


@cache
def mos_srcc(tool: str) -> float | None:
    """Return the tool's SRCC with the MOS of the labeled data sets, mean over their images; ``None`` if unknown."""
    rows = _table()["categories"].get(OVERALL, {}).get(tool, {})
    sets = [row for source, row in rows.items() if not source.startswith(LEVELS_SOURCE)]
    return sum(row["srcc"] * row["n"] for row in sets) / sum(row["n"] for row in sets) if sets else None


@dataclass(frozen=True)
class Errors:
    """The errors of scores on 1..5 against MOS, over one source of images: a standard deviation by tool, in levels.

    ``correlation`` has the correlation of two tools' errors, by their names in alphabetical order.
    """

    error: Mapping[str, float]
    correlation: Mapping[tuple[str, str], float]

    def covariance(self, a: str, b: str) -> float | None:
        """Return the covariance of two tools' errors, or one tool's variance; ``None`` where they were not measured."""
        together = 1.0 if a == b else self.correlation.get((min(a, b), max(a, b)))
        if together is None or not {a, b} <= self.error.keys():
            return None
        return together * self.error[a] * self.error[b]


@cache
def errors_by_source() -> Mapping[str, Errors]:
    """Return the errors of tools for quality as a whole, by source of the images; empty in an old table."""
    errors: dict[str, Errors] = {}
    for source, rows in (_table().get("errors") or {}).items():
        tools = [*rows["tools"]]
        pairs = {
            (min(a, b), max(a, b)): value
            for a, (_, *values) in rows["tools"].items()
            for b, value in zip(tools, values, strict=False)
        }
        errors[source] = Errors({tool: row[0] for tool, row in rows["tools"].items()}, pairs)
    return errors


@cache
def measured() -> Mapping[str, Mapping[str, Agreement]]:
    """Return by tool and category the mean SRCC of the table's sources, and the number of their images."""
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
