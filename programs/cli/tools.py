"""``agenticiqa tools``: list the metrics."""

from typing import Any

from agenticiqa.configs import load_config
from agenticiqa.programs.cli.arguments import ToolsOptions
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, show
from agenticiqa.programs.page.table import Table, number
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.catalog import listing

BEST_SHOWN = 3
PYIQA = (
    "Embedded metrics need no download. To add a metric of pyiqa, run pip install 'agenticiqa[pyiqa]' (its license is "
    "non-commercial) and list the metric under pyiqa: in a configuration."
)


def run(args: ToolsOptions) -> int:
    """Show the tools; the exit status says whether they were written as requested."""
    check_outputs(args)
    config = load_config(args.config)
    rows = listing(toolbox(config.tool_curves, config.pyiqa, config.adapter), config.tool_curves)
    return OK if show(args, View([tools_table(rows)], document=rows, remark=PYIQA)) else SOME_FAILED


def tools_table(rows: list[dict[str, Any]]) -> Table:
    """Return the metrics as a table."""
    lines = []
    for row in rows:
        low, high = row["raw_range"]
        raw_range = f"{low:g} .. {high:g}" + (f" {row['unit']}" if row["unit"] else "")
        best = ", ".join(_best_at(row)) or "-"
        lines.append(
            [row["name"], row["kind"], row["direction"], raw_range, number(row["cost_ms"], ".0f"), best, row["status"]]
        )
    return Table(("tool", "kind", "better", "raw range", "ms", "best at", "status"), lines)


def _best_at(row: dict[str, Any]) -> list[str]:
    """Return the categories that a tool follows best, each with its SRCC."""
    return [f"{name} {figures['srcc']:.2f}" for name, figures in list(row["measured"].items())[:BEST_SHOWN]]
