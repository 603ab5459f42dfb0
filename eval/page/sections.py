"""The sections of a report, as plain values for its template: groups, residuals, probabilities, costs, the command."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import difference_interval
from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.mcq.catalog import QUESTION_TASKS
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.page.reliability import calibration_error_interval, reliability, top_level
from agenticiqa.eval.page.run import AnyRun, Point, Run, times
from agenticiqa.eval.report.table import Cells
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.programs.backends.ledger import COUNTS, total
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

WORST, BEST = 6, 3  # images of the largest and of the smallest residuals that are shown
CURVE = 200  # points of the fitted curve
BIN_HEADINGS = ("mean confidence", "images", "share at that level")


class Fit(NamedTuple):
    """The logistic fit: its curve as (score, opinion), and each image with what its opinion exceeds the curve by."""

    curve: list[tuple[float, float]]
    residuals: list[tuple[float, Point]]


def fit(points: Sequence[Point]) -> Fit | None:
    """The fit of opinions to scores, residuals by size, the largest first; ``None`` where there is none."""
    scores, mos = columns(points)
    curve = fit_logistic(scores, mos)
    if curve is None:
        return None
    drawn = np.linspace(scores.min(), scores.max(), CURVE)
    away = [(float(difference), point) for difference, point in zip(mos - curve(scores), points, strict=True)]
    at = [(float(x), float(y)) for x, y in zip(drawn, curve(drawn), strict=True)]
    return Fit(at, sorted(away, key=lambda pair: -abs(pair[0])))


def probabilities(run: Run, mos_range: Sequence[float] | None = None) -> dict[str, Any]:
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
    level, confidence = top_level([point.probabilities or () for point in points])
    right = level == np.array([np.floor(scale.to_1_5(point.mos) + 0.5) for point in points])
    bins = reliability(confidence, right)
    error = calibration_error_interval(confidence, right, [point.content for point in points])
    lines = [
        [f"{each.confidence:.2f}", str(each.n), f"{each.right:.2f} [{each.low:.2f}, {each.high:.2f}]"] for each in bins
    ]
    return {
        "why": None,
        "n": len(points),
        "scale": f"{scale.low:g} to {scale.high:g}",
        "bins": bins,
        "table": Cells("Reliability by confidence, with 95 % Wilson intervals", BIN_HEADINGS, lines),
        "error": f"{error:.3f}{f' ({error.note})' if error.note else ''}",
    }


def compared(runs: Sequence[Run]) -> Cells | None:
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
    return Cells(caption, ["run", "images", "difference"], lines)


def seconds(run: AnyRun) -> Cells:
    """Median, mean and 95th percentile of the seconds of each stage, and of all together."""
    lines = [[stage, *(f"{value:.3f}" for value in found)] for stage, found in times(run)]
    return Cells("Seconds per image", ["stage", "median", "mean", "95 % take at most"], lines)


def spent(run: AnyRun) -> Cells | None:
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
    return Cells("What models were asked, all attempts together", headings, lines)


def command(run: AnyRun) -> str:
    """The command that repeats a run in another folder; what a shell cannot know of it follows as a comment."""
    made, figures = run.made_with, run.figures
    words = ["agenticiqa", "evaluate", str(figures.get("data", "LABELS.csv"))]
    if words[2] in TASKS or words[2] in QUESTION_TASKS:
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
