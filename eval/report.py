"""The figures of a run from its rows: as JSON, as a table and as Markdown."""

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import FEWEST_CONTENTS, Interval, difference_interval, fitted_plcc_interval, interval
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools import TOOLS, Tool, training_images
from agenticiqa.signatures.types import ExecutorOutput

Row = Mapping[str, Any]
Predictions = dict[int, float]  # by row number

OURS, TOOL_MEAN = "AgenticIQA", "tool mean"
FITTED_ON = "fitted on"
HEADINGS = {"srcc": "SRCC", "krcc": "KRCC", "plcc": "PLCC raw", "plcc_fitted": "PLCC fitted"}
MEASURES = {"srcc": srcc, "krcc": krcc, "plcc": plcc}


def summarize(rows: Sequence[Row], tools: Mapping[str, Tool] = TOOLS) -> dict[str, Any]:
    """Every figure of a run, as plain JSON types.

    ``systems`` has one entry per predictor of quality, each measured on the images that it has a value for: our score,
    the mean of the calibrated tool scores, and every tool alone; each with its interval over contents. Its
    ``fitted_on`` counts those of its images that the model or the calibration curve of a tool was fitted on (of
    ``tools``, by the rows' ``training_parts``): such figures are not held out. ``best_tool`` is the one with the
    highest SRCC among those that measured at least half of the images. Images without a score are counted in
    ``unscored``, by reason, and are in no figure.
    """
    first = judged_by(rows)
    predictions = _predictions(rows)
    ours, best = predictions[first], _best_tool(predictions, rows)
    in_focus = [name for name in (first, TOOL_MEAN, best) if name in predictions]
    return {
        "images": len(rows),
        "contents": len({row["content"] for row in rows}),
        "scored": len(ours),
        "unscored": len(rows) - len(ours),
        "unscored_reasons": dict(Counter(_reason(row) for row in rows if row.get("quality_score") is None)),
        "systems": [
            {"name": name, "n": len(values), "fitted_on": _fitted_on(name, values, rows, tools)}
            | _figures(values, rows)
            for name, values in predictions.items()
        ],
        "best_tool": best,
        "srcc_differences": {
            name: asdict(difference_interval(srcc, *_shared(rows, ours, predictions[name]))) for name in in_focus[1:]
        },
        **_run_statistics(rows),
    }


def judged_by(rows: Sequence[Row]) -> str:
    """What gave the score of the rows: the scorer that they name, else our program."""
    return next((str(row["scorer"]) for row in rows if row.get("scorer")), OURS)


def write(report: Mapping[str, Any], folder: Path) -> None:
    """Write ``report.json`` and ``report.md`` into the folder of the run."""
    write_atomically(folder / "report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    headings, lines = _cells(report)
    rows = ["", *(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *lines)), ""]
    text = [f"# {report['data']}, {report['backend']}", *rows, *(f"- {sentence}" for sentence in sentences(report))]
    write_atomically(folder / "report.md", "\n".join(text) + "\n")


def table(report: Mapping[str, Any]) -> Table:
    """The systems and their figures, for a terminal."""
    headings, lines = _cells(report)
    result = Table(*headings, title=escape(f"{report['data']}, {report['backend']}"))
    for line in lines:
        result.add_row(*map(escape, line), style="bold" if line[0] == report["systems"][0]["name"] else None)
    return result


def sentences(report: Mapping[str, Any]) -> list[str]:
    """What the table leaves out: coverage, how the figures were computed, their bias, statistics of the run."""
    lines = [f"{report['scored']} of {report['images']} images scored, {report['unscored']} unscored" + _counts(report)]
    few = "" if report["contents"] >= FEWEST_CONTENTS else f" (too few: at least {FEWEST_CONTENTS})"
    lines.append(f"Brackets: 95 % intervals, a jackknife over {report['contents']} contents{few}")
    lines.append("Fitted: after a monotone 4-parameter logistic, fitted once, on all images")
    if report["best_tool"]:
        lines.append(
            f"Best single tool: {report['best_tool']}, the best on these very images (so biased upward) of the tools "
            "that measured at least half of them"
        )
    flattered = [system["name"] for system in report["systems"] if any(system["fitted_on"].values())]
    for name, difference in report["srcc_differences"].items():
        mark = " (not held out)" if {OURS, name} & {*flattered} else ""
        value = f"{Interval(**difference):+.3f}{mark}"
        lines.append(f"SRCC of {OURS} minus {name} on the {difference['n']} images with both: {value}")
    if flattered:
        lines.append(
            f"Not held out: {', '.join(flattered)}. '{FITTED_ON}' counts the images that a trained model, or a "
            "calibration curve, in the predictor was fitted on; on new images a trained model agrees less with people"
        )
    if report["systems"][0]["name"] == OURS:
        sources = ", ".join(f"{source} {count}" for source, count in report["probability_sources"].items())
        lines.append(f"Sources of the level probabilities: {sources or 'none'}")
        stages = ", ".join(f"{stage} {count}" for stage, count in report["rejected_answers"].items())
        lines.append(
            f"Images with rejected answers: {report['images_with_rejected_answers']}"
            + (f" ({stages})" if stages else "")
        )
        lines.append(f"Replanned: {report['replanned']}; failed tool calls: {report['failed_tool_calls']}")
    if report["ms_per_image"]:
        median, mean = (report["ms_per_image"][key] / 1000 for key in ("median", "mean"))
        lines.append(f"Time per image: median {median:.2f} s, mean {mean:.2f} s")
    notes: dict[str, list[str]] = {}
    for system in report["systems"]:
        for key, heading in HEADINGS.items():
            if note := system[key]["note"]:
                notes.setdefault(f"{system['name']}: {note}", []).append(heading)
    lines += [f"{note} ({', '.join(headings)})" for note, headings in notes.items()]
    return [f"{sentence}." for sentence in lines]


def _predictions(rows: Sequence[Row]) -> dict[str, Predictions]:
    """Each system's values by row; the tools are in order of first appearance."""
    ours: Predictions = {}
    mean: Predictions = {}
    tools: dict[str, Predictions] = {}
    for index, row in enumerate(rows):
        if row.get("quality_score") is not None:
            ours[index] = row["quality_score"]
        evidence = row.get("executor_evidence") or {}
        overall = ExecutorOutput(quality_scores=evidence.get("quality_scores")).overall_mean
        if overall is not None:
            mean[index] = overall
        by_tool: dict[str, list[float]] = {}
        for call in _tool_log(row):
            if call["calibrated"] is not None:
                by_tool.setdefault(call["tool"], []).append(call["calibrated"])
        for tool, values in by_tool.items():
            tools.setdefault(tool, {})[index] = statistics.fmean(values)
    means = {TOOL_MEAN: mean} if judged_by(rows) == OURS else {}
    return {judged_by(rows): ours, **means, **tools}


def _fitted_on(
    system: str, values: Predictions, rows: Sequence[Row], tools: Mapping[str, Tool]
) -> dict[training_images.Way, int]:
    """How many images a model or a curve of a system was fitted on; our score and the mean are made of several."""
    counts: Counter[training_images.Way] = Counter()
    for index in values:
        parts = [training_images.Part(*part) for part in rows[index].get("training_parts") or ()]
        if parts:
            called = {call["tool"] for call in _tool_log(rows[index]) if call["calibrated"] is not None}
            names = called if system in (OURS, TOOL_MEAN) else {system}
            counts.update(
                {way for name in names & tools.keys() for way in training_images.fitted_on(tools[name], parts)}
            )
    return {"model": counts["model"], "curve": counts["curve"]}


def _shared(rows: Sequence[Row], *values: Predictions) -> tuple[Any, ...]:
    """Each system's values on the rows that all of them have, then the opinion scores and contents of these rows."""
    indices = [index for index in values[0] if all(index in other for other in values)]
    columns = [[value[index] for index in indices] for value in values]
    return *columns, [rows[index]["mos"] for index in indices], [rows[index]["content"] for index in indices]


def _figures(values: Predictions, rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    shared = _shared(rows, values)
    figures = {key: interval(measure, *shared) for key, measure in MEASURES.items()}
    figures["plcc_fitted"] = fitted_plcc_interval(*shared)
    return {key: asdict(figure) for key, figure in figures.items()}


def _best_tool(predictions: Mapping[str, Predictions], rows: Sequence[Row]) -> str | None:
    """The tool with the highest SRCC, among those that measured at least half of the images."""
    found = {
        name: value
        for name, values in predictions.items()
        if name not in (judged_by(rows), TOOL_MEAN) and 2 * len(values) >= len(rows)
        if (value := srcc(*_shared(rows, values)[:2])) is not None
    }
    return max(found, key=lambda name: found[name]) if found else None


def _run_statistics(rows: Sequence[Row]) -> dict[str, Any]:
    """Rejected answers, sources of the level probabilities, replans, failed tool calls, time."""
    judged = [row for row in rows if "error" not in row]
    times = [sum(row["timings_ms"].values()) for row in judged]
    rejected: Counter[str] = Counter()
    for row in judged:
        rejected.update({stage: len(reasons) for stage, reasons in row.get("rejected_answers", {}).items()})
    return {
        "probability_sources": dict(Counter(source for row in judged if (source := row.get("probability_source")))),
        "images_with_rejected_answers": sum(bool(row.get("rejected_answers")) for row in judged),
        "rejected_answers": dict(rejected),
        "replanned": sum(row.get("iteration_count", 0) > 0 for row in judged),
        "failed_tool_calls": sum(bool(call["error"]) for row in judged for call in _tool_log(row)),
        "ms_per_image": {"median": statistics.median(times), "mean": statistics.fmean(times)} if times else None,
    }


def _tool_log(row: Row) -> Sequence[Mapping[str, Any]]:
    return (row.get("executor_evidence") or {}).get("tool_log") or ()


def _reason(row: Row) -> str:
    return row["error"].partition(":")[0] if "error" in row else row["quality_reasoning"]


def _counts(report: Mapping[str, Any]) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in report["unscored_reasons"].items())
    return f" ({reasons})" if reasons else ""


def _cells(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The table's headings and lines."""
    lines = [
        [
            _label(system["name"], report["best_tool"]),
            str(system["n"]),
            ", ".join(f"{way} {count}" for way, count in system["fitted_on"].items() if count) or "-",
            *(f"{Interval(**system[key]):.3f}" for key in HEADINGS),
        ]
        for system in report["systems"]
    ]
    return ["predictor", "n", FITTED_ON, *HEADINGS.values()], lines


def _label(name: str, best: str | None) -> str:
    return f"{name} (best single tool)" if name == best else name
