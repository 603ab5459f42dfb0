"""How often the 95 % intervals hold the true correlation, by simulation, beside those of a percentile bootstrap.

    python -m agenticiqa.eval.research.interval_coverage [--runs 400]

Each run draws contents with several images each, as a set of synthetic distortions has (quality varies within a
content, and a predictor errs by content and by image), or with one image each, as a set of authentic photos has, and
asks whether the interval holds the correlation of the whole population. The skewed population has opinions with a long
tail and errors with heavy tails. The difference is that of two predictors that share a part of their errors.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from agenticiqa.eval.intervals import Interval, difference_interval, interval
from agenticiqa.eval.metrics import Numbers, plcc, srcc

POPULATION = 40_000  # images by which the true correlation is computed
RESAMPLES = 300
SETS = [("synthetic", 4, 18), ("synthetic", 10, 18), ("synthetic", 25, 18), ("skewed", 4, 18), ("skewed", 25, 18)]
SETS += [("authentic", 25, 1), ("authentic", 100, 1), ("authentic", 400, 1)]


def draw(kind: str, contents: int, images: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, Numbers]:
    """The predictions of two predictors and the true opinions, each of shape (contents, images)."""
    shape, each = (contents, images), (contents, 1)
    if kind == "skewed":
        mos = rng.gamma(1.5, 1, shape) + rng.exponential(0.4, each)
        shared = 0.2 * rng.standard_t(4, each)
        first, second = (np.sqrt(mos) + shared + 0.2 * rng.standard_t(4, shape) for _ in range(2))
    elif kind == "synthetic":
        mos = rng.normal(0, 1, shape) + rng.normal(0, 0.3, each)
        shared = np.exp(rng.normal(0, 0.15, each)) * mos + rng.normal(0, 0.3, each)
        first, second = (shared + rng.normal(0, 0.2, each) + rng.normal(0, 0.35, shape) for _ in range(2))
    else:
        mos = rng.normal(0, 1, shape)
        shared = mos + rng.normal(0, 0.5, shape)
        first, second = (shared + rng.normal(0, 0.6, shape) for _ in range(2))
    return first, second, mos


def bootstrap(predictions: Numbers, mos: Numbers, rng: np.random.Generator) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the SRCC of resampled contents; arrays of shape (contents, images)."""
    draws = rng.integers(len(mos), size=(RESAMPLES, len(mos)))
    low, high = np.percentile([srcc(predictions[d].ravel(), mos[d].ravel()) for d in draws], [2.5, 97.5])
    return float(low), float(high)


def coverage(kind: str, contents: int, images: int, runs: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """By figure, the share of runs whose interval holds the truth, and the intervals' mean width."""
    rng = np.random.default_rng(seed)
    first, _, mos = (each.ravel() for each in draw(kind, POPULATION // images, images, rng))
    truth = {"SRCC": srcc(first, mos), "PLCC": plcc(first, mos), "difference": 0.0, "SRCC, bootstrap": srcc(first, mos)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in truth}
    names = np.repeat([f"{number}" for number in range(contents)], images).tolist()
    for _ in range(runs):
        a, b, y = draw(kind, contents, images, rng)
        flat = a.ravel(), y.ravel()
        found["SRCC"].append(_ends(interval(srcc, *flat, names)))
        found["PLCC"].append(_ends(interval(plcc, *flat, names)))
        found["difference"].append(_ends(difference_interval(srcc, a.ravel(), b.ravel(), y.ravel(), names)))
        found["SRCC, bootstrap"].append(bootstrap(a, y, rng))
    return {name: _covered(found[name], truth[name] or 0.0) for name in truth}


def _ends(found: Interval) -> tuple[float, float]:
    if found.low is None or found.high is None:
        raise ValueError(f"no interval: {found.note}")
    return found.low, found.high


def _covered(intervals: Sequence[tuple[float, float]], truth: float) -> tuple[float, float]:
    low, high = np.array(intervals).T
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="simulated sets per row (%(default)s)")
    args = parser.parse_args(arguments)
    figures = ("SRCC", "PLCC", "difference", "SRCC, bootstrap")
    print(f"| population | contents | images | {' | '.join(figures)} |")
    print("| --- " * (3 + len(figures)) + "|")
    for kind, contents, images in SETS:
        cells = coverage(kind, contents, images, args.runs)
        shown = " | ".join(f"{cells[name][0]:.2f} ({cells[name][1]:.2f})" for name in figures)
        print(f"| {kind} | {contents} | {contents * images} | {shown} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
