"""How often the 95 % intervals hold the truth, by simulation, for every figure that is printed with brackets.

    python -m agenticiqa.eval.research.interval_coverage [--runs 300] [--population hard] [--contents 4 10]

Each run draws contents with several images each, as a set of synthetic distortions has, and asks whether the interval
holds the figure of the whole population. In the mild one everything is normal; in the hard one opinions have a long
tail, errors heavy ones, and predictions another slope for each content; at chance predictions know nothing of opinions;
photos are contents of one image each. A difference is that of two predictors that share a part of their errors, and is
0 in truth.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit

from agenticiqa.eval.intervals import (
    Interval,
    accuracy,
    after_curve,
    blocks_of,
    difference_interval,
    error_interval,
    interval,
    rmse_interval,
)
from agenticiqa.eval.logistic import fit_logistic, fit_logistic_and_line
from agenticiqa.eval.metrics import Numbers, mean_absolute_error, plcc, srcc
from agenticiqa.eval.report.compare import RATINGS
from agenticiqa.eval.report.page.sections import calibration_error
from agenticiqa.eval.report.pairs import pair_intervals

POPULATION = 36_000  # images by which the truth is computed; a fifth of them for pairs
IMAGES = {"mild": 18, "hard": 18, "chance": 18, "photos": 1}  # of a content
CONTENTS = {"mild": (4, 6, 10, 15, 25), "hard": (4, 6, 10, 15, 25), "chance": (4, 6, 10, 15, 25), "photos": (25, 100)}
DEVIATION = 0.35  # of an opinion, for pairs


def draw(kind: str, contents: int, images: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, Numbers]:
    """The predictions of two predictors and the true opinions, each of shape (contents, images)."""
    shape, each = (contents, images), (contents, 1)
    if kind == "hard":
        mos = rng.gamma(1.5, 1, shape) + rng.exponential(0.4, each)
        shared = np.exp(rng.normal(0, 0.3, each)) * np.sqrt(mos) + 0.3 * rng.standard_t(4, each)
        first, second = (shared + 0.15 * rng.standard_t(4, each) + 0.25 * rng.standard_t(4, shape) for _ in range(2))
    elif kind == "mild":
        mos = rng.normal(0, 1, shape) + rng.normal(0, 0.3, each)
        shared = np.exp(rng.normal(0, 0.15, each)) * mos + rng.normal(0, 0.3, each)
        first, second = (shared + rng.normal(0, 0.2, each) + rng.normal(0, 0.35, shape) for _ in range(2))
    elif kind == "chance":
        mos = rng.normal(0, 1, shape) + rng.normal(0, 0.5, each)
        first, second = (rng.normal(0, 1, shape) + rng.normal(0, 0.7, each) for _ in range(2))
    else:
        mos = rng.normal(0, 1, shape)
        shared = mos + rng.normal(0, 0.5, shape)
        first, second = (shared + rng.normal(0, 0.6, shape) for _ in range(2))
    return first, second, mos


def figures(first: Numbers, second: Numbers, mos: Numbers, contents: Sequence[str]) -> dict[str, Interval]:
    """Every figure with its interval; arrays are (N,)."""
    plcc4, rmse4 = after_curve(fit_logistic, first, mos, contents)
    plcc5, rmse5 = after_curve(fit_logistic_and_line, first, mos, contents)
    tau, order = pair_intervals(first, mos, blocks_of(contents), np.full(len(mos), DEVIATION))
    right = np.abs(first - mos) < 0.6
    return {
        "SRCC": interval(srcc, first, mos, contents),
        "KRCC": tau,
        "PLCC raw": interval(plcc, first, mos, contents),
        "PLCC fitted": plcc4,
        "PLCC fitted (5)": plcc5,
        "RMSE raw": rmse_interval(first, mos, contents),
        "RMSE fitted": rmse4,
        "RMSE fitted (5)": rmse5,
        "pairs in order": order,
        "difference of SRCC": difference_interval(srcc, first, second, mos, contents),
        "difference of PLCC fitted": RATINGS["PLCC fitted"](first, second, mos, contents),
        "accuracy": accuracy(right.tolist(), contents),
        "mean absolute error": error_interval(mean_absolute_error, first, mos, contents),
        "calibration error": error_interval(calibration_error, expit(first), right.astype(float), contents),
    }


def truth(kind: str) -> dict[str, float]:
    """Every figure of a population; those of pairs are of a part of it."""
    first, second, mos = (each.ravel() for each in draw(kind, POPULATION // IMAGES[kind], IMAGES[kind], _rng(0)))
    one = ["one content"] * len(mos)  # which has no interval
    some = slice(0, POPULATION // 5)
    found = figures(first, second, mos, one) | {
        name: each
        for name, each in figures(first[some], second[some], mos[some], one[some]).items()
        if name in ("KRCC", "pairs in order")
    }
    return {name: 0.0 if name.startswith("difference") else each.value or 0.0 for name, each in found.items()}


def coverage(kind: str, contents: int, runs: int, true: Mapping[str, float] | None = None) -> dict[str, float]:
    """By figure, the share of the intervals of simulated sets that hold the truth; a set without one is left out."""
    true, rng, images = true or truth(kind), _rng(contents), IMAGES[kind]
    names = np.repeat([f"{number}" for number in range(contents)], images).tolist()
    held: dict[str, list[bool]] = {name: [] for name in true}
    for _ in range(runs):
        first, second, mos = (each.ravel() for each in draw(kind, contents, images, rng))
        for name, each in figures(first, second, mos, names).items():
            if each.low is not None and each.high is not None:
                held[name].append(each.low <= true[name] <= each.high)
    return {name: float(np.mean(each)) if each else float("nan") for name, each in held.items()}


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each population: figures by numbers of contents."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300, help="simulated sets per cell (%(default)s)")
    parser.add_argument("--population", nargs="+", choices=list(IMAGES), default=list(IMAGES))
    parser.add_argument("--contents", nargs="+", type=int, help="numbers of contents (default: 4 to 25)")
    args = parser.parse_args(arguments)
    for kind in args.population:
        true, counts = truth(kind), args.contents or CONTENTS[kind]
        columns = [coverage(kind, count, args.runs, true) for count in counts]
        print(f"\n| {kind}, contents | {' | '.join(map(str, counts))} |")
        print("| --- " * (1 + len(counts)) + "|")
        for name in true:
            print(f"| {name} | {' | '.join(f'{column[name]:.2f}' for column in columns)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
