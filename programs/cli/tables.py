"""Tables on stdout: the metrics, the backends, the estimated cost of a run."""

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.text import Text

from agenticiqa.programs.cli.render import print_lines, stdout_console

if TYPE_CHECKING:
    from agenticiqa.programs.batch.cost import Estimate

COUNTED = {
    "calls": "calls",
    "calls_at_most": "at most",
    "input_tokens": "input tokens",
    "image_tokens": "of images",
    "output_tokens": "output tokens",
}
ESTIMATED = (
    "Nothing was sent. Calls and tokens are estimated for one pass without retries, from the real prompts and the "
    "providers' published rules for images; a range begins where nothing is found, or planned, that further stages are "
    "asked about. At most: with every answer rejected and every image replanned. Where a server refuses a feature, a "
    "few more requests are sent."
)

BEST_SHOWN = 3
PYIQA = (
    "Embedded metrics need no download. Any metric of pyiqa can be added: pip install 'agenticiqa[pyiqa]' "
    "(its license is non-commercial), then list it under pyiqa: in a configuration."
)


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


def print_remark(text: str) -> None:
    """Print what a reader has to know of a table below it, on stderr where stdout is no terminal."""
    console = stdout_console()
    if console.is_terminal:
        console.print(Text(text, style="dim"))
    else:
        print(text, file=sys.stderr)


def print_estimate(found: "Estimate", as_json: bool = False) -> None:
    """Print the estimate of a run as a table, or as one JSON object, on stdout."""
    if as_json:
        whole = {"images": found.images, "questions": found.questions, "refused": found.refused, "stages": found.rows()}
        print(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    about = f"{found.questions} questions about {found.images} images"
    if not found.stages:
        print(f"{about}: no model is asked")
        return
    models = sorted({stage.model for stage in found.stages})
    several = ["model"] if len(models) > 1 else []
    lines = []
    for row in found.rows():
        usd = "no price" if row["usd"] is None else _range(row, "usd", ".4f")
        counts = [_range(row, count) for count in COUNTED]
        lines.append([row["stage"], *counts, usd, *([row["model"]] if several else [])])
    print(f"{about}, asked of {', '.join(models)}:")
    print_lines(("stage", *COUNTED.values(), "USD", *several), lines, numbers=range(1, len(COUNTED) + 2))
    print_remark(ESTIMATED)
    for refused in found.refused:
        print(f"agenticiqa: {refused}", file=sys.stderr)


def _range(row: dict[str, Any], count: str, form: str = ",") -> str:
    """A count, from the least one where that is known and differs."""
    low, high = (format(value, form) for value in (row.get(f"least_{count}", row[count]), row[count]))
    return high if low == high else f"{low}-{high}"


def print_backends(rows: list[dict[str, Any]], providers: list[dict[str, Any]]) -> None:
    """Print the backends of a configuration as a table on stdout, and the providers, if given, as a second one."""
    lines = []
    for row in rows:
        where = [row["backend"], *([row["server"]] if row["server"] else [])]
        if row["key"]:
            where.append(f"key {row['key']['variable']} ({'set' if row['key']['set'] else 'not set'})")
        has = (row["structured_outputs"] or "-", _yes_or_no(row["logprobs"]), _yes_or_no(row["seed"]))
        shown = ", ".join(row["formats"] or ()) or "-"
        lines.append(["\n".join(row["stages"]), "\n".join(where), *has, shown])
    print_lines(("stages", "backend", "JSON", "log-probs", "seed", "images"), lines)
    if providers:
        lines = [
            [
                row["provider"],
                row["needs"],
                *(_yes_or_no(row[name]) for name in ("json_object", "logprobs", "seed")),
                ", ".join(row["formats"]),
            ]
            for row in providers
        ]
        print("\nProviders, and what their interfaces support (a single model or server may support less):")
        print_lines(("provider", "needs", "JSON objects", "log-probs", "seed", "images"), lines)


def _best_at(row: dict[str, Any]) -> list[str]:
    """The categories that a tool measures best, with its SRCC; what it is made for where that is not known."""
    measured = list(row["measured"].items())[:BEST_SHOWN]
    return [f"{name} {found['srcc']:.2f}" for name, found in measured] or row["good_at"]


def _yes_or_no(value: bool | int | None) -> str:
    return "-" if value is None else "yes" if value else "no"
