"""From the rows of a run to its figures, as data, as a table on the terminal and as Markdown."""

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.bootstrap import RESAMPLES, estimate, estimate_fitted, paired_difference
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.signatures.types import ExecutorOutput

Row = Mapping[str, Any]
Predictions = dict[int, float]  # by the number of the row

OURS, TOOL_MEAN = "AgenticIQA", "tool mean"
HEADINGS = {"srcc": "SRCC", "krcc": "KRCC", "plcc": "PLCC raw", "plcc_fitted": "PLCC fitted"}
MEASURES = {"srcc": srcc, "krcc": krcc, "plcc": plcc}
FEW_CONTENTS = 10
PLAIN_WIDTH = 140  # columns where the output is no terminal


def summarise(rows: Sequence[Row], *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """Every figure of a run, as plain JSON types.

    ``systems`` has one entry per predictor of quality, each measured over the images that it has a value for: our
    score, the mean of the calibrated tool scores, and every tool alone; the first two and the best tool have bootstrap
    intervals (``resamples=0``: none has). ``best_tool`` is the one with the highest SRCC among those that measured at
    least half of the images. What has no score is counted in ``unscored``, by reason, and enters no figure.
    """
    predictions = _predictions(rows)
    ours, best = predictions[OURS], _best_tool(predictions, rows)
    in_focus = [name for name in (OURS, TOOL_MEAN, best) if name in predictions]
    return {
        "images": len(rows),
        "contents": len({row["content"] for row in rows}),
        "scored": len(ours),
        "unscored": len(rows) - len(ours),
        "unscored_reasons": dict(Counter(_reason(row) for row in rows if row.get("quality_score") is None)),
        "resamples": resamples,
        "systems": [
            {"name": name, "n": len(values), **_figures(values, rows, resamples if name in in_focus else 0, seed)}
            for name, values in predictions.items()
        ],
        "best_tool": best,
        "srcc_differences": {
            name: asdict(
                paired_difference(srcc, *_shared(rows, ours, predictions[name]), resamples=resamples, seed=seed)
            )
            for name in in_focus[1:]
        },
        **_conduct(rows),
    }


def write(report: Mapping[str, Any], folder: Path) -> None:
    """Write ``report.json`` and ``report.md`` into the folder of the run."""
    (folder / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    headings, lines = _table(report)
    table = ["", *(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *lines)), ""]
    text = [f"# {report['data']}, {report['backend']}", *table, *(f"- {sentence}" for sentence in sentences(report))]
    (folder / "report.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def show(report: Mapping[str, Any]) -> None:
    """Print the table and what has to be said beside it."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH)
    headings, lines = _table(report)
    table = Table(*headings, title=escape(f"{report['data']}, {report['backend']}"))
    for line in lines:
        table.add_row(*map(escape, line), style="bold" if line[0] == OURS else None)
    console.print(table)
    for sentence in sentences(report):
        console.print(f"- {sentence}", markup=False)


def sentences(report: Mapping[str, Any]) -> list[str]:
    """What the table does not say: coverage, how the figures were made, what flatters, how the run went."""
    told = [f"{report['scored']} of {report['images']} images scored, {report['unscored']} unscored" + _counts(report)]
    if report["resamples"]:
        few = " (few: rough)" if report["contents"] < FEW_CONTENTS else ""
        told.append(f"Brackets: 95% intervals, {report['resamples']} resamples of {report['contents']} contents{few}")
    told.append("Fitted: after a monotone 4-parameter logistic, which is fitted once and kept for the resamples")
    if report["best_tool"]:
        told.append(
            f"Best single tool: {report['best_tool']}, chosen on these very images, which flatters it, "
            "among the tools that measured at least half of them"
        )
    for name, difference in report["srcc_differences"].items():
        told.append(f"SRCC of {OURS} minus {name} on the {difference['n']} images that both have: {_cell(difference)}")
    sources = ", ".join(f"{source} {count}" for source, count in report["probability_sources"].items())
    told.append(f"Level probabilities came from: {sources or 'nowhere'}")
    stages = ", ".join(f"{stage} {count}" for stage, count in report["rejected_answers"].items())
    told.append(f"Images with rejected answers: {report['images_with_retries']}" + (f" ({stages})" if stages else ""))
    told.append(f"Planned again: {report['replanned']}; tool calls that failed: {report['failed_tool_calls']}")
    if report["ms_per_image"]:
        median, mean = (report["ms_per_image"][key] / 1000 for key in ("median", "mean"))
        told.append(f"Time per image: median {median:.2f} s, mean {mean:.2f} s")
    notes: dict[str, list[str]] = {}
    for system in report["systems"]:
        for key, heading in HEADINGS.items():
            if note := system[key]["note"]:
                notes.setdefault(f"{system['name']}: {note}", []).append(heading)
    told += [f"{note} ({', '.join(headings)})" for note, headings in notes.items()]
    return [f"{sentence}." for sentence in told]


def _predictions(rows: Sequence[Row]) -> dict[str, Predictions]:
    """Each system's value for every row that it has one for; the tools follow in order of first appearance."""
    ours: Predictions = {}
    mean: Predictions = {}
    tools: dict[str, Predictions] = {}
    for index, row in enumerate(rows):
        if row.get("quality_score") is not None:
            ours[index] = row["quality_score"]
        evidence = row.get("executor_evidence") or {}
        rated = ExecutorOutput(quality_scores=evidence.get("quality_scores")).overall_mean
        if rated is not None:
            mean[index] = rated
        by_tool: dict[str, list[float]] = {}
        for call in evidence.get("tool_log") or ():
            if call["calibrated"] is not None:
                by_tool.setdefault(call["tool"], []).append(call["calibrated"])
        for tool, values in by_tool.items():
            tools.setdefault(tool, {})[index] = statistics.fmean(values)
    return {OURS: ours, TOOL_MEAN: mean, **tools}


def _shared(rows: Sequence[Row], *values: Predictions) -> tuple[Any, ...]:
    """Each system's values on the rows that all of them have, then those rows' opinion scores and contents."""
    indices = [index for index in values[0] if all(index in other for other in values)]
    columns = [[value[index] for index in indices] for value in values]
    return *columns, [rows[index]["mos"] for index in indices], [rows[index]["content"] for index in indices]


def _figures(values: Predictions, rows: Sequence[Row], resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    shared = _shared(rows, values)
    figures = {key: estimate(measure, *shared, resamples=resamples, seed=seed) for key, measure in MEASURES.items()}
    figures["plcc_fitted"] = estimate_fitted(*shared, resamples=resamples, seed=seed)
    return {key: asdict(figure) for key, figure in figures.items()}


def _best_tool(predictions: Mapping[str, Predictions], rows: Sequence[Row]) -> str | None:
    """The tool with the highest SRCC, among those that measured at least half of the images."""
    found = {
        name: value
        for name, values in predictions.items()
        if name not in (OURS, TOOL_MEAN) and 2 * len(values) >= len(rows)
        if (value := srcc(*_shared(rows, values)[:2])) is not None
    }
    return max(found, key=lambda name: found[name]) if found else None


def _conduct(rows: Sequence[Row]) -> dict[str, Any]:
    """How the run went: retries, where the probabilities came from, replans, failing tools, time."""
    judged = [row for row in rows if "error" not in row]
    times = [sum(row["timings_ms"].values()) for row in judged]
    rejected: Counter[str] = Counter()
    for row in judged:
        rejected.update({stage: len(reasons) for stage, reasons in row["retries"].items()})
    return {
        "probability_sources": dict(Counter(source for row in judged if (source := row["probability_source"]))),
        "images_with_retries": sum(bool(row["retries"]) for row in judged),
        "rejected_answers": dict(rejected),
        "replanned": sum(row["iteration_count"] > 0 for row in judged),
        "failed_tool_calls": sum(bool(c["error"]) for row in judged for c in row["executor_evidence"]["tool_log"]),
        "ms_per_image": {"median": statistics.median(times), "mean": statistics.fmean(times)} if times else None,
    }


def _reason(row: Row) -> str:
    return row["error"].partition(":")[0] if "error" in row else row["quality_reasoning"]


def _counts(report: Mapping[str, Any]) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in report["unscored_reasons"].items())
    return f" ({reasons})" if reasons else ""


def _table(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    lines = [
        [_label(system["name"], report["best_tool"]), str(system["n"]), *(_cell(system[key]) for key in HEADINGS)]
        for system in report["systems"]
    ]
    return ["predictor", "n", *HEADINGS.values()], lines


def _label(name: str, best: str | None) -> str:
    return f"{name} (best single tool)" if name == best else name


def _cell(figure: Mapping[str, Any]) -> str:
    if figure["value"] is None:
        return "-"
    interval = f" [{figure['low']:.3f}, {figure['high']:.3f}]" if figure["low"] is not None else ""
    return f"{figure['value']:.3f}{interval}"
