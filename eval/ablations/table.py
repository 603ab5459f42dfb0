"""The whole program and those without a part: agreement with people, and the paired difference to the whole."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from agenticiqa.eval.intervals import Interval, difference_interval, interval
from agenticiqa.eval.metrics import plcc, srcc

Row = Mapping[str, Any]
WHOLE = "whole program"
HEADINGS = ("program", "n", "unscored", "SRCC", "PLCC raw", "SRCC minus whole", "changed", "calls", "s per image")


def ablation_figures(runs: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """A row of figures, as JSON types, for each of the runs, whose rows are of the same images in the same order.

    The first run is the whole program. ``difference`` is the SRCC minus that of the whole, on the images that both
    scored, with its paired interval over contents; ``changed`` counts the images of these whose score differs,
    ``calls`` the requests that were sent to models.
    """
    whole = next(iter(runs.values()))
    found = []
    for name, rows in runs.items():
        scored = [row for row in rows if row.get("quality_score") is not None]
        values = [row["quality_score"] for row in scored], [row["mos"] for row in scored]
        contents = [row["content"] for row in scored]
        both = [
            (ours["quality_score"], row["quality_score"], row["mos"], row["content"])
            for ours, row in zip(whole, rows, strict=True)
            if ours.get("quality_score") is not None and row.get("quality_score") is not None
        ]
        ours, without, mos, scenes = ([each[place] for each in both] for place in range(4))
        times = [sum(row["timings_ms"].values()) / 1000 for row in scored]
        found.append(
            {
                "name": name,
                "n": len(scored),
                "unscored": len(rows) - len(scored),
                "srcc": asdict(interval(srcc, *values, contents)),
                "plcc": asdict(interval(plcc, *values, contents)),
                "difference": None if rows is whole else asdict(difference_interval(srcc, without, ours, mos, scenes)),
                "changed": None if rows is whole else sum(a != b for a, b in zip(ours, without, strict=True)),
                "calls": sum(use["calls"] for row in rows for use in (row.get("usage_by_stage") or {}).values()),
                "seconds": sum(times) / len(times) if times else None,
            }
        )
    return found


def table(figures: Sequence[Mapping[str, Any]]) -> Table:
    """The figures for a terminal."""
    result = Table(*HEADINGS, title="without a part")
    for line in _cells(figures):
        result.add_row(*line)
    return result


def markdown(figures: Sequence[Mapping[str, Any]]) -> str:
    """The figures as a Markdown table."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *_cells(figures)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(figures: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [
        [
            each["name"],
            str(each["n"]),
            str(each["unscored"]),
            *(f"{Interval(**each[key]):.3f}" for key in ("srcc", "plcc")),
            "-" if each["difference"] is None else f"{Interval(**each['difference']):+.3f}",
            "-" if each["changed"] is None else str(each["changed"]),
            str(each["calls"]),
            "-" if each["seconds"] is None else f"{each['seconds']:.2f}",
        ]
        for each in figures
    ]
