"""Simulated populations of images, for the coverage of intervals: a test and ``benchmarks/interval_coverage.py``."""

from collections.abc import Sequence
from functools import cache

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
from agenticiqa.eval.report.page.sections import calibration_error
from agenticiqa.eval.report.pairs import pairwise_accuracy
from agenticiqa.eval.report.run_differences import RATINGS

IMAGES = {"mild": 18, "hard": 18, "chance": 18, "photos": 1}  # images of each content
POPULATION = 36_000  # images for the true figures


def draw(kind: str, contents: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, Numbers]:
    """Return the predictions of two scorers that share a part of their errors, and MOS, each for all images.

    In a mild population, all values are normal. A hard one has long-tailed MOS, heavy-tailed errors and one slope
    for each content. At chance, predictions do not depend on MOS. Photos have a content each.
    """
    shape, each = (contents, IMAGES[kind]), (contents, 1)
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
    return first.ravel(), second.ravel(), mos.ravel()


def figures(first: Numbers, second: Numbers, mos: Numbers, contents: Sequence[str]) -> dict[str, Interval]:
    """Return every figure that is printed with an interval."""
    plcc4, rmse4 = after_curve(fit_logistic, first, mos, contents)
    plcc5, rmse5 = after_curve(fit_logistic_and_line, first, mos, contents)
    right = np.abs(first - mos) < 0.6
    return {
        "SRCC": interval(srcc, first, mos, contents),
        "PLCC raw": interval(plcc, first, mos, contents),
        "PLCC fitted": plcc4,
        "PLCC fitted (5)": plcc5,
        "RMSE raw": rmse_interval(first, mos, contents),
        "RMSE fitted": rmse4,
        "RMSE fitted (5)": rmse5,
        "pairwise accuracy": pairwise_accuracy(first, mos, blocks_of(contents), np.full(len(mos), 0.35)),
        "difference of SRCC": difference_interval(srcc, first, second, mos, contents),
        "difference of PLCC fitted": RATINGS["PLCC fitted"](first, second, mos, contents),
        "accuracy": accuracy(right.tolist(), contents),
        "mean absolute error": error_interval(mean_absolute_error, first, mos, contents),
        "calibration error": error_interval(calibration_error, expit(first), right.astype(float), contents),
    }


@cache
def truth(kind: str) -> dict[str, float]:
    """Return every figure of a population; the difference of its two scorers is 0, because they are alike."""
    population = draw(kind, POPULATION // IMAGES[kind], np.random.default_rng(0))
    found = figures(*population, ["all"] * POPULATION)
    return {name: 0.0 if name.startswith("difference") else each.value or 0.0 for name, each in found.items()}


def coverage(kind: str, contents: int, sets: int) -> dict[str, float]:
    """Return the share of simulated sets in which the interval of a figure contains the figure of the population."""
    rng, names = np.random.default_rng(contents), [f"{at // IMAGES[kind]}" for at in range(IMAGES[kind] * contents)]
    held: dict[str, list[bool]] = {name: [] for name in truth(kind)}
    for _ in range(sets):
        for name, found in figures(*draw(kind, contents, rng), names).items():
            if found.low is not None and found.high is not None:
                held[name].append(found.low <= truth(kind)[name] <= found.high)
    return {name: float(np.mean(hits)) if hits else float("nan") for name, hits in held.items()}
