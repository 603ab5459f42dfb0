"""Measure embedded metrics of overall quality on every image, as the baselines in the table of an evaluation."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.eval.commands.shared import watched
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.runs import made_by, pin, report_name
from agenticiqa.eval.scorers.named import scorer_of
from agenticiqa.eval.scorers.rows import assess_set
from agenticiqa.eval.scorers.scorer import NO_QUERY
from agenticiqa.eval.tasks.labeled_set import LabeledSet
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.loading import size_of
from agenticiqa.programs.tools import TOOLS, Tool, find_tool

COST_PIXELS = 512 * 384  # image size that ``Tool.cost_ms`` refers to
STARTING_S = 3.0  # seconds until the processes of a metric have started


def baseline_tools(labels: Sequence[LabeledImage], tools: Mapping[str, Tool], besides: Sequence[str]) -> list[Tool]:
    """Return the embedded metrics of overall quality; full-reference ones only if references are given.

    ``besides`` are the evaluated scorers, which are omitted.
    """
    kinds = {"NR", "FR"} if any(label.reference for label in labels) else {"NR"}
    excluded = {find_tool(name, TOOLS) for name in besides}
    embedded = [tool for name, tool in tools.items() if name in TOOLS and name not in excluded and tool.curve]
    return [tool for tool in embedded if tool.kind in kinds and tool.rates_overall]


def not_measured(tools: Sequence[Tool], rows: Iterable[Row]) -> list[Tool]:
    """Return the metrics without a whole-image score in some row, because the program did not choose them there."""
    left = {tool.name: tool for tool in tools}
    everywhere = set(left)
    for row in rows:
        log = (row.get("executor_evidence") or {}).get("tool_log") or ()
        everywhere &= {call["tool"] for call in log if call["calibrated"] is not None and not call.get("box")}
    return [tool for name, tool in left.items() if name not in everywhere]


def price_text(tools: Sequence[Tool], labels: Sequence[LabeledImage], workers: int) -> str:
    """Return a line with the number of metrics to measure and the expected time if no values are cached."""
    pixels = sum(_pixels(label.image) for label in labels)
    seconds = sum(tool.cost_ms or 0 for tool in tools) / 1000 * pixels / COST_PIXELS / workers
    minutes = math.ceil((seconds + STARTING_S * len(tools)) / 60)
    return f"baselines: up to {len(tools)} metrics on {len(labels)} images, about {minutes} min ({workers} in parallel)"


def baseline_scores(
    data: LabeledSet,
    labels: Sequence[LabeledImage],
    tools: Sequence[Tool],
    out: Path,
    options: Mapping[str, Any],
    about: Mapping[str, Any],
) -> list[dict[str, float]]:
    """Return for each of the ``labels`` of ``data`` its calibrated whole-image scores, on 1..5, by metric.

    A metric that fails on an image has no score there. Every metric is a separate run in ``out``/baseline-NAME, with
    its report, and is continued there. ``options`` and ``about`` describe the data in its ``run.json`` and its report.
    Raises as ``assess_labels`` does.
    """
    scores: list[dict[str, float]] = [{} for _ in labels]
    for tool in tools:
        scorer, folder = scorer_of(tool.name), out / f"baseline-{tool.name}"
        with ResultsFile(folder / "results.jsonl") as results:
            pin(folder, made_by(scorer, data.digest, options))
            measured = assess_set(scorer, labels, results, query=NO_QUERY, workers=available_cores(), watch=watched)
            for values, row in zip(scores, measured, strict=True):
                if "error" not in row and tool.curve:
                    values[tool.name] = tool.curve(row["raw_score"])
            figures = {**summarize(measured, scale=data.scale), **about, "backend": scorer.name}
            rating_report(figures).write(folder, report_name(folder, figures["limit"]))
    return scores


def with_baselines(rows: Iterable[Row], scores: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    """Yield the rows, each with its ``baseline_scores`` as ``baselines``."""
    for row, values in zip(rows, scores, strict=True):
        yield {**row, "baselines": values}


def _pixels(path: Path) -> int:
    try:
        width, height = size_of(path)
        return width * height
    except ImageError:
        return 0  # the assessment of the image reports the reason
