"""Measure which photos of an album a person should rate, so that the adapter gains most: chosen ones or random ones.

    python -m agenticiqa.eval.research.rating_choice DATA

DATA has the folders clive, biq2021, agiqa3k and live_r2, each with a ``labels.csv``. The scorer was not trained on the
measured set (see ``adapter_figures``). In each of 20 draws, half of the images are offered for rating. All are offered
if half is less than twice the number of labels. A simulated rater gives the MOS plus normal noise of ``mos_std``.

"stratified" takes equally many random images from ten strata of the predicted score. The two choices use the same
strata, and the kernel of the adapter's ridge regression. "spread" takes the image that is known least from those taken
before (greedy D-optimal design). "typical" takes the one that tells most about all offered images (K. Yu, J. Bi and
V. Tresp, "Active learning via transductive experimental design", ICML 2006). SRCC is of the images without a label, or
of those that were not offered, which are the same for all ways. Intervals are of the mean over draws (Student's t), so
they do not cover other sets. Neither choice was better than "stratified" on these sets.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from agenticiqa.eval.calibrate.adapter_fit import GivenLabels, fit_adapter, helps
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.adapter_figures import SCALES, Numbers, RatedImages, read_set, scores_by_others
from agenticiqa.eval.research.command import parser_of, run_command

Rows = NDArray[np.intp]

COUNTS, DRAWS, STRATA = (30, 50, 100), 20, 10
PENALTY = 1.0  # the middle one of the adapter's penalties
WAYS = ("random", "stratified", "spread", "typical")
FEWEST_TESTED = 20
HEADINGS = ("labels", "n", "before", *WAYS, *(f"{way} - stratified" for way in WAYS if way != "stratified"))


def chosen(images: RatedImages, count: int, way: str, seed: int) -> Rows:
    """Return the rows of ``count`` images, chosen in one of ``WAYS``."""
    rng, total = np.random.default_rng(seed), len(images.score)
    if way == "random":
        return rng.permutation(total)[:count]
    stratum = np.empty(total, int)
    stratum[np.argsort(images.score)] = np.arange(total) * STRATA // total
    turns, free = rng.permutation(STRATA), np.ones(total, bool)
    features = np.zeros((total, 1)) if way == "stratified" else images.features
    kernel = (features @ features.T).astype(np.float64) / features.shape[1]
    taken: list[int] = []
    for step in range(count):
        rows = np.flatnonzero(free & (stratum == turns[step % STRATA]))
        values = rng.random(len(rows))
        if way != "stratified" and taken:
            values = kernel[rows, rows]
            if way == "typical":
                values = np.square(kernel[rows]).sum(axis=1) / (values + PENALTY)
        one = int(rows[np.argmax(values)])
        taken.append(one)
        free[one] = False
        kernel -= np.outer(kernel[one], kernel[one]) / (kernel[one, one] + PENALTY)  # what its label will explain
    return np.array(taken)


def measured(images: RatedImages, std: Numbers, count: int, way: str, seed: int) -> tuple[float, ...]:
    """Return n, SRCC before and after of images without a label, the same of images not offered, and 1 if saved."""
    rng = np.random.default_rng(seed)
    order, ratings = rng.permutation(len(std)), np.clip(images.mos + rng.normal(0, std), 1, 5)
    offered = order[: len(order) // 2] if len(order) >= 4 * count else order
    rows = offered[chosen(images.of(offered), count, way, seed)]
    contents = np.stack([images.content[rows]] * 2, axis=1)
    labels = GivenLabels(images.features[rows], images.score[rows], ratings[rows], np.ones(count), contents)
    fit, weights, held_out = fit_adapter(labels)
    after = np.clip(fit.level + fit.shipped * images.score + images.features @ weights, 1, 5)
    figures: list[float] = []
    for test in (np.setdiff1d(order, rows), np.setdiff1d(order, offered)):
        both = [srcc(scores[test], images.mos[test]) for scores in (images.score, after)] if len(test) else [None] * 2
        figures += [len(test), *(float("nan") if value is None else value for value in both)]
    return (*figures, float(helps(labels, held_out)))


def mean_interval(values: Numbers) -> str:
    """Return the mean of values (N,) with its 95 % interval."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.3f} [{values.mean() - half:+.3f}, {values.mean() + half:+.3f}]"


def lines(images: RatedImages, std: Numbers, count: int, draws: int = DRAWS) -> tuple[list[str], str]:
    """Return a row of both tables (without a label, not offered), and one of the gain of stratified labels."""
    figures = {way: np.array([measured(images, std, count, way, seed) for seed in range(draws)]) for way in WAYS}
    middle, tables = figures["stratified"], []
    for n, before, after in ((0, 1, 2), (3, 4, 5)):
        if middle[0, n]:
            means = [middle[:, before], *(figures[way][:, after] for way in WAYS)]
            gains = [figures[way][:, after] - middle[:, after] for way in WAYS if way != "stratified"]
            cells = [*(f"{values.mean():.3f}" for values in means), *map(mean_interval, gains)]
            tables.append(f"| {count} | {middle[0, n]:.0f} | {' | '.join(cells)} |")
    return tables, f"| {count} | {mean_interval(middle[:, 2] - middle[:, 1])} | {middle[:, 6].mean():.2f} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="a folder with one folder for each set")
    parser.add_argument("--noise", type=float, help="the rater's standard deviation in levels, in place of mos_std")

    def run(args: argparse.Namespace) -> None:
        clive, biq = (read_set(args.data / name) for name in ("clive", "biq2021"))
        for name in ("clive", "agiqa3k", "live_r2"):
            images = clive if name == "clive" else read_set(args.data / name)
            others = [biq] if images is clive else [clive, biq]
            images = images.of(np.arange(len(images.mos)), scores_by_others(others, images))
            low, high = SCALES[name]
            given = [item.mos_std for item in read_labels(args.data / name / "labels.csv")]
            std = np.array([args.noise or (0.5 if one is None else one * 4 / (high - low)) for one in given])
            print(f"\n{name}, noise of {np.median(std):.2f} levels (median)", flush=True)
            rows = [lines(images, std, count) for count in COUNTS if count + FEWEST_TESTED <= len(std)]
            for number, tested in enumerate(("without a label", "not offered")):
                if table := [tables[number] for tables, _ in rows if number < len(tables)]:
                    print(f"\nSRCC of images {tested}\n\n| {' | '.join(HEADINGS)} |\n|{' ---: |' * len(HEADINGS)}")
                    print("\n".join(table))
            print("\nGain of stratified labels\n\n| labels | SRCC after - before | saved |\n|" + " ---: |" * 3)
            print("\n".join(gain for _, gain in rows), flush=True)

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
