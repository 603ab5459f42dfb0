"""Compute the sections of a report as plain values for its template: residuals, probabilities, costs, the command.

A reliability diagram and the expected calibration error show whether level probabilities are calibrated:
Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", 2017 (arXiv 1706.04599), equation 3.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import Interval, error_interval, wilson
from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.metrics import Numbers
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.page.kept_run import KeptRun, Point
from agenticiqa.eval.report.run_differences import compare_report
from agenticiqa.eval.report.run_scores import read_scores
from agenticiqa.eval.runs import shown_path
from agenticiqa.programs.backends.usage import COUNTS, total
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.table import Table, table_of

WORST, BEST = 6, 3  # images of the largest and of the smallest residuals that are shown
CURVE = 200  # points of the fitted curve
SPENT = ("calls", "from the cache", "retries", "input tokens", "output tokens")
STEPS = {0.8: 0.05, 0.5: 0.1, 0.0: 0.2, -1.0: 0.5}  # distances between ticks of the axis of bars, by their lowest end
BINS = 10  # bins of the reliability diagram


class ResidualFit(NamedTuple):
    """The logistic fit: its curve as (score, MOS), and each image with its residual, the MOS minus the curve."""

    curve: list[tuple[float, float]]
    residuals: list[tuple[float, Point]]


def residual_fit(points: Sequence[Point]) -> ResidualFit | None:
    """Return the fit of MOS to scores, with residuals by size, the largest first, or ``None``."""
    scores, mos = columns(points)
    curve = fit_logistic(scores, mos)
    if curve is None:
        return None
    drawn = np.linspace(scores.min(), scores.max(), CURVE)
    away = [(float(difference), point) for difference, point in zip(mos - curve(scores), points, strict=True)]
    at = [(float(x), float(y)) for x, y in zip(drawn, curve(drawn), strict=True)]
    return ResidualFit(at, sorted(away, key=lambda pair: -abs(pair[0])))


def probabilities(run: KeptRun, mos_range: Sequence[float] | None = None) -> dict[str, Any]:
    """Return the reliability of the level probabilities against the level nearest to the MOS.

    ``mos_range`` gives the MOS values for levels 1 and 5; the default is the ends of the report's scale. Without
    probabilities or a known scale, the result has only ``why``, the reason.
    """
    points = [point for point in run.points if point.probabilities]
    ends = mos_range or [*(run.figures["scale"] or {}).values()]
    if not points:
        return {"why": "no image has level probabilities"}
    if not ends:
        return {"why": "the range of the MOS scale is unknown; give it with --mos-range LOW HIGH"}
    scale = MosScale(*ends)
    shares = np.array([point.probabilities for point in points], float)
    level, confidence = shares.argmax(axis=1) + 1, shares.max(axis=1)
    right = level == np.array([np.floor(scale.to_1_5(point.mos) + 0.5) for point in points])
    bins = reliability(confidence, right)
    error = error_interval(calibration_error, confidence, right, [point.content for point in points])
    rows = [
        {
            "mean confidence": f"{group.confidence:.2f}",
            "images": str(group.n),
            "accuracy": f"{group.right:.2f} [{group.low:.2f}, {group.high:.2f}]",
        }
        for group in bins
    ]
    return {
        "why": None,
        "n": len(points),
        "scale": f"{scale.low:g} to {scale.high:g}",
        "bins": bins,
        "table": table_of("Reliability by confidence, with 95 % Wilson intervals", rows),
        "error": f"{error:.3f}{f' ({error.note})' if error.note else ''}",
    }


class Bin(NamedTuple):
    """The images with a confidence in one tenth of 0..1: their mean confidence, and the share of right levels.

    ``low`` and ``high`` are the ends of the share's 95 % Wilson interval.
    """

    n: int
    confidence: float
    right: float
    low: float
    high: float


def reliability(confidence: ArrayLike, right: ArrayLike) -> list[Bin]:
    """Return the bins of equal width that hold images. ``confidence`` is in [0, 1], ``right`` 0 or 1."""
    p, hit = np.asarray(confidence, float), np.asarray(right, float)
    place = _place(p)
    bins = []
    for number in np.unique(place):
        inside = place == number
        n, hits = int(inside.sum()), int(hit[inside].sum())
        bins.append(Bin(n, float(p[inside].mean()), hits / n, *wilson(hits, n)))
    return bins


def calibration_error(confidence: ArrayLike, right: ArrayLike) -> float | None:
    """Return the expected calibration error, 0..1: the mean of |share right - mean confidence| over bins.

    Bins are weighted by their images. Returns ``None`` without images.
    """
    p, hit = np.asarray(confidence, float), np.asarray(right, float)
    if not len(p):
        return None
    return float(np.abs(np.bincount(_place(p), weights=hit - p, minlength=BINS)).sum() / len(p))


def _place(confidence: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((confidence * BINS).astype(int), BINS - 1)


def folded(table: Table) -> Table:
    """Merge rows that differ only in the first cell, which then lists all their names."""
    names: dict[tuple[str, ...], list[str]] = {}
    for first, *cells in table.lines:
        names.setdefault(tuple(cells), []).append(first)
    return replace(table, lines=[[" = ".join(first), *cells] for cells, first in names.items()])


class Bar(NamedTuple):
    """A bar for a figure with its interval: its text, and the positions of value and ends in percent of the width."""

    name: str
    text: str
    value: float
    low: float
    high: float


class BarChart(NamedTuple):
    """Bars on one scale, and the numbers at its axis."""

    bars: list[Bar]
    ticks: list[str]


def bars(figures: Sequence[tuple[str, Interval]]) -> BarChart:
    """Return bars of correlations or shares, on a scale that ends at 1 and begins below the lowest end.

    Figures without a value have no bar, and equal ones share a bar.
    """
    names: dict[Interval, list[str]] = {}
    for name, interval in figures:
        if interval.value is not None:
            names.setdefault(interval, []).append(name)
    ends = {
        interval: [float(value if end is None else end) for end in (value, interval.low, interval.high)]
        for interval in names
        if (value := interval.value) is not None
    }
    lowest = min((min(known) for known in ends.values()), default=0.0)
    step = next(step for least, step in STEPS.items() if lowest >= least)
    start = min(0.8, math.floor(lowest / step) * step)
    made = [
        Bar(" = ".join(names[interval]), f"{interval:.3f}", *(100 * (end - start) / (1 - start) for end in known))
        for interval, known in ends.items()
    ]
    return BarChart(made, [f"{tick:.2f}" for tick in np.arange(start, 1 + step / 2, step)])


def compared(runs: Sequence[KeptRun]) -> tuple[Report | None, str]:
    """Return the comparison of runs, or the reason why they cannot be compared; neither for a single run."""
    if len(runs) < 2:
        return None, ""
    try:
        return compare_report([read_scores(run.folder, run.name) for run in runs]), ""
    except UserError as error:
        return None, f"{error}."


def seconds(run: KeptRun) -> Table:
    """Return median, mean and 95th percentile of the seconds of each stage, and of all together."""
    from pandas import DataFrame

    frame = DataFrame(run.timings).fillna(0.0) / 1000
    frame["all"] = frame.sum(axis=1)
    columns = {"median": frame.median(), "mean": frame.mean(), "95th percentile": frame.quantile(0.95)}
    rows = [{"stage": stage} | {name: f"{of[stage]:.3f}" for name, of in columns.items()} for stage in frame]
    return table_of("Seconds per image", rows if len(frame) else [])


def spent(run: KeptRun) -> Table | None:
    """Return calls, tokens and USD of each stage that used a model, and of all together; ``None`` if none did."""
    stages = {stage: use.to_json() for stage, use in run.spent.items()}
    if not stages:
        return None
    stages["all"] = total(stages)
    rows = [
        {"stage": stage}
        | {heading: f"{use[key]:,}" for heading, key in zip(SPENT, COUNTS, strict=True)}
        | {"USD": "no price" if use["usd"] is None else f"{use['usd']:.4f}"}
        for stage, use in stages.items()
    ]
    return table_of("Requests to models, including failed attempts", rows)


def command(run: KeptRun) -> str:
    """Return the command that made a run, with the version of the program or of the metric, if the run has it."""
    command = run.figures.get("command") or "# command unknown: the run was started from Python, or by an older version"
    made_of = run.made_with.get("made_of", {})  # what determines the numbers of a scorer
    if version := run.made_with.get("version", made_of.get("agenticiqa")):
        return f"{command}  # version {version}"
    return f"{command}  # pyiqa {made_of['pyiqa']}" if "pyiqa" in made_of else command


def settings(made_with: Mapping[str, Any]) -> str:
    """Return a run's settings as JSON, without local folders."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shown(item) for key, item in value.items()}
        if isinstance(value, list):
            return [shown(item) for item in value]
        return shown_path(value) if isinstance(value, str) and value.startswith("/") else value

    return json.dumps(shown(dict(made_with)), indent=2, ensure_ascii=False)


def columns(points: Sequence[Point]) -> tuple[Numbers, Numbers]:
    """Return scores and MOS of images, each (N,)."""
    return np.array([point.entry.score for point in points], float), np.array([point.mos for point in points], float)
