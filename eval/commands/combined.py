"""Several tasks in one table: the correlations of each, and their means."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

SHOWN = {"srcc": "SRCC", "krcc": "KRCC", "plcc": "PLCC raw", "plcc_fitted": "PLCC fitted"}
SENTENCE = (
    "Means over the tasks with a figure: each task counting the same, and each by its number of scored images. They "
    "have no interval: tasks are no sample of anything."
)


def summary(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of what was measured first in each report, and their unweighted and weighted mean; JSON types."""
    tasks = [
        {
            "task": each["task"],
            "n": each["scored"],
            "unscored": each["unscored"],
            **{key: each["systems"][0][key]["value"] for key in SHOWN},
        }
        for each in reports
    ]
    equal, weighted = [1.0] * len(tasks), [float(task["n"]) for task in tasks]
    return {
        "backend": reports[0]["backend"],
        "tasks": tasks,
        "mean": {key: _mean([task[key] for task in tasks], equal) for key in SHOWN},
        "weighted_mean": {key: _mean([task[key] for task in tasks], weighted) for key in SHOWN},
    }


def table(reports: Sequence[Mapping[str, Any]]) -> Table:
    """``summary`` for a terminal."""
    whole = summary(reports)
    result = Table("task", "n", "unscored", *SHOWN.values(), title=escape(f"all tasks, {whole['backend']}"))
    for task in whole["tasks"]:
        result.add_row(escape(task["task"]), str(task["n"]), str(task["unscored"]), *_cells(task), end_section=False)
    result.add_section()
    counts = [str(sum(task[key] for task in whole["tasks"])) for key in ("n", "unscored")]
    result.add_row("mean", *counts, *_cells(whole["mean"]))
    result.add_row("mean, by images", *counts, *_cells(whole["weighted_mean"]), style="bold")
    return result


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _cells(figures: Mapping[str, Any]) -> list[str]:
    return ["-" if figures[key] is None else f"{figures[key]:.3f}" for key in SHOWN]
