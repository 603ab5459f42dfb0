"""Measure whether the distortions that a program names are what makes the images bad: is an image better without them?

    agenticiqa evaluate LABELS.csv --out RUN          # of any backend
    python -m agenticiqa.eval.research.faithfulness LABELS.csv RUN

Nothing is asked of a model: the kept rows of the run say what was named first (the most severe). For images of
``eval.research.planted_pairs`` the distortion of that name is taken away exactly, and the gain of the full-reference
judge is compared with the mean over the seven categories (naming at random) and with the better of the two. All images
are also given to the inverse of each category (``restoration``), and the gain where its category was named is compared
with what the same inverse gains on the other images of the set, as an inverse may help or harm any image; it is
measured by no-reference metrics that the score is not made of.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from agenticiqa.eval.calibrate.raw_values import opinion_of
from agenticiqa.eval.datasets import LabeledImage, read_labels
from agenticiqa.eval.intervals import difference_interval, interval
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.report.run_scores import RESULTS, is_run
from agenticiqa.eval.research.planted_pairs import JUDGE, Pair, read_pairs, reduced
from agenticiqa.eval.research.restoration import restore
from agenticiqa.programs import images
from agenticiqa.programs.batch.results_file import kept_rows, latest_rows
from agenticiqa.programs.cli import render
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.tools import Tool, get_tool, toolbox
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.training_images import parts_of
from agenticiqa.signatures.vocabulary import DETECTABLE, SEVERITIES, DetectableDistortion

Row = dict[str, Any]
Gains = dict[DetectableDistortion, float]  # in levels, by the category whose inverse was applied

INDEPENDENT = ("NIQE", "BRISQUE", "PIQE")


@dataclass(frozen=True)
class Gain:
    """What an image gains, in levels of a metric, without what was named, without another category, and at best.

    ``others`` is what naming by chance gains: the mean over the seven categories where a planted distortion is taken
    away, and the mean of the same inverse over images of which another category was named, where it is applied.
    """

    content: str
    named: float
    others: float
    best: float


def named_first(row: Row) -> DetectableDistortion | None:
    """The most severe distortion of a row's analysis, of the image as a whole if it has any; ``None`` without."""
    analysis = (row.get("executor_evidence") or {}).get("distortion_analysis") or {}
    found = analysis.get("Global") or [each for region in analysis.values() for each in region]
    visible = [each for each in found if each["type"] in DETECTABLE and each["severity"] != SEVERITIES[0]]
    worst = max(visible, key=lambda each: SEVERITIES.index(each["severity"]), default=None)
    return worst["type"] if worst else None


def undone(pair: Pair, named: DetectableDistortion) -> Gain:
    """What taking away the planted distortion of a name gains; nothing, where another one was planted."""
    gains = {name: pair.gain_without(name) for name in DETECTABLE}
    return Gain(
        pair.content, gains[named], fmean(gains.values()), max(pair.gain_without_first, pair.gain_without_second)
    )


def restored(pixels: RGB, score: Callable[[RGB], float]) -> Gains:
    """What the inverse of each category gains by a score."""
    before = score(pixels)
    return {name: score(restore(pixels, name)) - before for name in DETECTABLE}


def beside_others(
    contents: Sequence[str], named: Sequence[DetectableDistortion | None], gains: Sequence[Gains]
) -> dict[DetectableDistortion, list[Gain]]:
    """By category, what its inverse gains on the images of which it was named, beside the rest of the images.

    A category is left out where no image, or every one, has it named.
    """
    found = {}
    for category in dict.fromkeys(name for name in named if name):
        rest = [each[category] for name, each in zip(named, gains, strict=True) if name != category]
        if rest:
            found[category] = [
                Gain(content, each[category], fmean(rest), max(each.values()))
                for content, name, each in zip(contents, named, gains, strict=True)
                if name == category
            ]
    return found


def mean_score(tools: Sequence[Tool]) -> Callable[[RGB], float]:
    """The mean of no-reference tools on 1..5. Raises UserError for one that has no curve or needs a reference."""
    for tool in tools:
        if tool.kind != "NR" or tool.calibration is None:
            raise UserError(f"{tool.name} cannot judge here: a no-reference metric with a curve to 1..5 is needed")
    return lambda pixels: fmean(opinion_of(tool, pixels) for tool in tools)


HEADINGS = ("images", "n", "gain without what was named", "naming by chance", "difference", "best category", "gaining")


def line(title: str, gains: Sequence[Gain]) -> str:
    """A Markdown row for HEADINGS: mean gains in levels with their intervals, and the share of images that gain."""
    names = [gain.content for gain in gains]

    def mean(values: Sequence[float], minus: Sequence[float] | None = None) -> str:
        first, second = np.array(values), np.zeros(len(values)) if minus is None else np.array(minus)
        return f"{difference_interval(_mean, first, second, first, names):+.3f}"

    named, others = [gain.named for gain in gains], [gain.others for gain in gains]
    best, gaining = mean([gain.best for gain in gains]), fmean(value > 0 for value in named)
    return (
        f"| {title} | {len(gains)} | {mean(named)} | {mean(others)} | {mean(named, others)} | {best} | {gaining:.2f} |"
    )


def _mean(values: Numbers, _: Numbers) -> float:
    return float(values.mean())


def judged(labels: Path, run: Path, split: str | None) -> list[tuple[LabeledImage, Row]]:
    """The labeled images with their rows of a run. Raises UserError where the run has none of them."""
    if not is_run(run):
        raise UserError(f"{run}: there is no {RESULTS}; run agenticiqa evaluate {labels} --out {run}")
    try:
        kept = [row for _, row in kept_rows(run / RESULTS)]
    except ValueError as error:
        raise UserError(f"{run / RESULTS}: a line is no row of a run ({error})") from error
    rows = {row["name"]: row for row in latest_rows(kept) if "error" not in row}
    found = [(label, rows[label.name]) for label in read_labels(labels, split) if label.name in rows]
    if not found:
        raise UserError(f"{run} has no result for an image of {labels}; run agenticiqa evaluate {labels} --out {run}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, help="the labeled set; planted.csv is read beside it, where it is")
    parser.add_argument("run", type=Path, help="the folder of a run of `agenticiqa evaluate` on it")
    parser.add_argument("--split", help="only the rows of this split")
    parser.add_argument("--metrics", nargs="+", default=INDEPENDENT, help="that judge restored images (%(default)s)")
    args = parser.parse_args(argv)
    try:
        rows = judged(args.labels, args.run, args.split)
        tools = toolbox()
        score = mean_score([get_tool(name, tools) for name in args.metrics])
        named = [(label, name) for label, row in rows if (name := named_first(row))]
        scored = [(label, row["quality_score"]) for label, row in rows if row.get("quality_score") is not None]
        agreement = interval(
            srcc, [score for _, score in scored], [x.mos for x, _ in scored], [x.content for x, _ in scored]
        )
        known = sum(bool(parts_of(label.image)) for label, _ in rows)
        not_held_out = f", not held out: shipped tools were fitted on {known} of these images" if known else ""
        print(f"{len(rows)} images, {len(named)} of them with a named distortion")
        print(f"SRCC of the score {agreement:.3f} (n={agreement.n}{not_held_out})")
        print(f"\n| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}")
        planted = args.labels.parent / "planted.csv"
        if planted.exists():
            pairs = read_pairs(planted)
            print(line(f"planted distortion taken away, {JUDGE}", [undone(pairs[x.name], name) for x, name in named]))
        every = (restored(reduced(images.load(label.image).pixels), score) for label, _ in rows)
        gains = list(render.progress(every, len(rows), "restoring"))
        by_category = beside_others([x.content for x, _ in rows], [named_first(row) for _, row in rows], gains)
        title = f"inverse applied, {', '.join(args.metrics)}"
        if by_category:
            print(line(title, [gain for found in by_category.values() for gain in found]))
        for category, found in by_category.items():
            print(line(f"{title}: {category}", found))
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
