"""``agenticiqa tools``: list the metrics."""

import json
from argparse import Namespace
from typing import Any

from agenticiqa.configs import load_config
from agenticiqa.programs.cli.render import print_lines, print_remark
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.catalog import listing

BEST_SHOWN = 3
PYIQA = (
    "Embedded metrics need no download. To add a metric of pyiqa, run pip install 'agenticiqa[pyiqa]' (its license is "
    "non-commercial) and list the metric under pyiqa: in a configuration."
)


def run(args: Namespace) -> int:
    """Print the tools; the exit status is 0."""
    config = load_config(args.config)
    rows = listing(toolbox(config.tool_curves, config.pyiqa, config.adapter), config.tool_curves)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        print_tools(rows)
    return OK


def print_tools(rows: list[dict[str, Any]]) -> None:
    """Print the metrics as a table on stdout."""
    lines = []
    for row in rows:
        low, high = row["raw_range"]
        raw_range = f"{low:g} .. {high:g}" + (f" {row['unit']}" if row["unit"] else "")
        cost = "-" if row["cost_ms"] is None else f"{row['cost_ms']:.0f}"
        best = ", ".join(_best_at(row)) or "-"
        lines.append([row["name"], row["kind"], row["direction"], raw_range, cost, best, row["status"]])
    print_lines(("tool", "kind", "better", "raw range", "ms", "best at", "status"), lines)
    print_remark(PYIQA)


def _best_at(row: dict[str, Any]) -> list[str]:
    """Return the categories that a tool follows best, each with its SRCC."""
    return [f"{name} {figures['srcc']:.2f}" for name, figures in list(row["measured"].items())[:BEST_SHOWN]]
