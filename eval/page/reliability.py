"""Whether level probabilities mean what they say: the reliability diagram and the expected calibration error.

Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", 2017 (arXiv 1706.04599), equation 3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenticiqa.eval.intervals import Interval, error_interval, wilson

BINS = 10


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


def calibration_error_interval(confidence: ArrayLike, right: ArrayLike, contents: Sequence[str]) -> Interval:
    """``calibration_error`` with its 95 % interval over contents."""
    return error_interval(calibration_error, confidence, right, contents)


def top_level(probabilities: Sequence[Sequence[float]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most probable level (1..5) of each image and its probability."""
    p = np.asarray(probabilities, float)
    return p.argmax(axis=1) + 1, p.max(axis=1)


def _place(confidence: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((confidence * BINS).astype(int), BINS - 1)
