"""The sections of a report as plain values for its template: residuals, probabilities, costs, the command.

Whether level probabilities mean what they say is shown by a reliability diagram and the expected calibration error:
Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", 2017 (arXiv 1706.04599), equation 3.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import difference_interval, error_interval, wilson
from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.report.model import ReportTable
from agenticiqa.eval.report.page.kept_run import KeptRun, Point
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.programs.backends.ledger import COUNTS, total
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

WORST, BEST = 6, 3  # images of the largest and of the smallest residuals that are shown
CURVE = 200  # points of the fitted curve
BINS = 10  # of the reliability diagram
BIN_HEADINGS = ("mean confidence", "images", "share at that level")


class ResidualFit(NamedTuple):
    """The logistic fit: its curve as (score, opinion), and each image with what its opinion exceeds the curve by."""

    curve: list[tuple[float, float]]
    residuals: list[tuple[float, Point]]


def residual_fit(points: Sequence[Point]) -> ResidualFit | None:
    """The fit of opinions to scores, residuals by size, the largest first; ``None`` where there is none."""
    scores, mos = columns(points)
    curve = fit_logistic(scores, mos)
    if curve is None:
        return None
    drawn = np.linspace(scores.min(), scores.max(), CURVE)
    away = [(float(difference), point) for difference, point in zip(mos - curve(scores), points, strict=True)]
    at = [(float(x), float(y)) for x, y in zip(drawn, curve(drawn), strict=True)]
    return ResidualFit(at, sorted(away, key=lambda pair: -abs(pair[0])))


def probabilities(run: KeptRun, mos_range: Sequence[float] | None = None) -> dict[str, Any]:
    """The reliability of the level probabilities against the level that the opinion is nearest to.

    ``mos_range`` are the opinion scores that stand for 1 and 5; without it, they are the ends of the report's scale.
    ``why`` alone says why there is none: no probabilities, or a scale that is unknown.
    """
    points = [point for point in run.points if point.probabilities]
    ends = mos_range or [*(run.figures["scale"] or {}).values()]
    if not points:
        return {"why": "there are none"}
    if not ends:
        return {"why": "the ends of the labels' scale are unknown; give them with --mos-range LOW HIGH"}
    scale = MosScale(*ends)
    shares = np.array([point.probabilities for point in points], float)
    level, confidence = shares.argmax(axis=1) + 1, shares.max(axis=1)
    right = level == np.array([np.floor(scale.to_1_5(point.mos) + 0.5) for point in points])
    bins = reliability(confidence, right)
    error = error_interval(calibration_error, confidence, right, [point.content for point in points])
    lines = [
        [f"{each.confidence:.2f}", str(each.n), f"{each.right:.2f} [{each.low:.2f}, {each.high:.2f}]"] for each in bins
    ]
    return {
        "why": None,
        "n": len(points),
        "scale": f"{scale.low:g} to {scale.high:g}",
        "bins": bins,
        "table": ReportTable("Reliability by confidence, with 95 % Wilson intervals", BIN_HEADINGS, lines),
        "error": f"{error:.3f}{f' ({error.note})' if error.note else ''}",
    }


class Bin(NamedTuple):
    """The images whose confidence lies in one tenth: their mean confidence, and the share of right levels.

    ``low`` and ``high`` are the ends of the share's 95 % Wilson interval.
    """

    n: int
    confidence: float
    right: float
    low: float
    high: float


def reliability(confidence: ArrayLike, right: ArrayLike) -> list[Bin]:
    """The bins of equal width that hold images. ``confidence`` is in [0, 1], ``right`` 0 or 1."""
    p, hit = np.asarray(confidence, float), np.asarray(right, float)
    place = _place(p)
    found = []
    for number in np.unique(place):
        inside = place == number
        n, hits = int(inside.sum()), int(hit[inside].sum())
        found.append(Bin(n, float(p[inside].mean()), hits / n, *wilson(hits, n)))
    return found


def calibration_error(confidence: ArrayLike, right: ArrayLike) -> float | None:
    """The expected calibration error, 0..1: the mean over bins of |share right - mean confidence|, weighted by images.

    ``None`` without images.
    """
    p, hit = np.asarray(confidence, float), np.asarray(right, float)
    if not len(p):
        return None
    return float(np.abs(np.bincount(_place(p), weights=hit - p, minlength=BINS)).sum() / len(p))


def _place(confidence: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((confidence * BINS).astype(int), BINS - 1)


def compared(runs: Sequence[KeptRun]) -> ReportTable | None:
    """SRCC of each further run minus that of the first, on the images that both scored, paired over contents.

    Only images of the same name, bytes and opinion count. ``None`` for a single run.
    """
    first, *others = runs
    if not others:
        return None
    one = {point.name: point for point in first.scored}
    lines = []
    for other in others:
        shared = [(one[point.name], point) for point in other.scored if point.name in one]
        same = [pair for pair in shared if pair[0].mos == pair[1].mos and pair[0].entry.sha256 == pair[1].entry.sha256]
        mos, contents = [a.mos for a, _ in same], [a.content for a, _ in same]
        a, _ = columns([a for a, _ in same])
        b, _ = columns([b for _, b in same])
        figure = difference_interval(srcc, b, a, mos, contents)
        lines.append([other.title, str(figure.n), f"{figure:+.3f}{f' ({figure.note})' if figure.note else ''}"])
    caption = f"SRCC of each run minus that of {first.title}, on the images that both scored, paired over contents"
    return ReportTable(caption, ["run", "images", "difference"], lines)


def seconds(run: KeptRun) -> ReportTable:
    """Median, mean and 95th percentile of the seconds of each stage, and of all together."""
    stages = dict.fromkeys(stage for ms in run.timings for stage in ms)
    found = {stage: np.array([ms.get(stage, 0.0) for ms in run.timings]) / 1000 for stage in stages}
    if found:
        found["all"] = np.sum([*found.values()], axis=0)
    lines = [
        [stage, *(f"{value:.3f}" for value in (np.median(s), s.mean(), np.quantile(s, 0.95)))]
        for stage, s in found.items()
    ]
    return ReportTable("Seconds per image", ["stage", "median", "mean", "95 % take at most"], lines)


def spent(run: KeptRun) -> ReportTable | None:
    """Calls, tokens and USD of each stage that asked a model, and of all together; ``None`` where none did."""
    stages = {stage: use.to_json() for stage, use in run.spent.items()}
    if not stages:
        return None
    stages["all"] = total(stages)
    lines = [
        [stage, *(f"{use[key]:,}" for key in COUNTS), "no price" if use["usd"] is None else f"{use['usd']:.4f}"]
        for stage, use in stages.items()
    ]
    headings = ["stage", "calls", "from the cache", "retries", "input tokens", "output tokens", "USD"]
    return ReportTable("What models were asked, all attempts together", headings, lines)


def command(run: KeptRun) -> str:
    """The command that repeats a run in another folder; what a shell cannot know of it follows as a comment."""
    made, figures = run.made_with, run.figures
    words = ["agenticiqa", "evaluate", str(figures.get("data", "LABELS.csv"))]
    if run.asks_questions or words[2] in TASKS:
        words += ["--root", "DIR"]
    wanted = {"split": made.get("split"), "query": made.get("query"), "scorer": made.get("scorer")}
    for option, value in {**wanted, "judge": figures.get("judge")}.items():
        if value and value != DEFAULT_QUERY:
            words += [f"--{option}", str(value)]
    words += [f"--{option}" for option in ("circular", "baselines") if figures.get(option)]
    asked = backends(made)
    if len(asked) == 1 and asked[0] != "offline":
        words += ["--backend", asked[0]]
    told = f"  # version {made.get('version', 'unknown')}"
    if len(asked) > 1:
        told += f", --config with the stages asking {', '.join(asked)}"
    return shlex.join([*words, "--out", f"{run.folder}-again"]) + told


def backends(made_with: Mapping[str, Any]) -> list[str]:
    """The backends of the stages, each once."""
    stages = (stage for stage in (made_with.get("config") or {}).values() if isinstance(stage, dict))
    return [*dict.fromkeys(str(stage["backend"]) for stage in stages if "backend" in stage)]


def columns(points: Sequence[Point]) -> tuple[Numbers, Numbers]:
    """Scores and opinions of images, each (N,)."""
    return np.array([point.entry.score for point in points], float), np.array([point.mos for point in points], float)
