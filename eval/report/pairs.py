"""Compute the share of pairs of images in the right order."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from agenticiqa.eval.intervals import Interval, jackknife, share_interval
from agenticiqa.eval.metrics import Numbers

MOST_IMAGES = 10_000  # images with deviations of MOS; from a larger set this many are drawn with a fixed seed
ROWS_AT_ONCE = 8  # rows of the table of pairs that stay in the processor's cache

Pairs = NDArray[np.float64]  # shape (.., 2): the counted pairs, and the concordant minus the discordant ones


def pairwise_accuracy(
    predictions: Numbers, mos: Numbers, blocks: NDArray[np.intp], mos_std: Numbers | None = None
) -> Interval:
    """Return the share of pairs, 0..1, in the order of their MOS (equal predictions: one half).

    The share counts pairs with different MOS. With ``mos_std`` (standard deviations of MOS, on the same scale; NaN, for
    unknown, counts as 0), the MOS must differ by more than the standard deviation of the difference,
    ``sqrt(std_i^2 + std_j^2)``. ``n`` is the number of images; the note has the number of pairs. Arrays are (N,), and
    ``blocks`` come from ``intervals.blocks_of``.
    """
    n, drawn = len(mos), ""
    if mos_std is None or not np.isfinite(mos_std).any():
        total = _differing(predictions, mos)
        shares = jackknife(lambda rows: _share(_differing(predictions[rows], mos[rows])), _share(total), blocks)
    else:
        if n > MOST_IMAGES:
            drawn = f"{MOST_IMAGES:,} images were drawn at random"
            chosen = np.sort(np.random.default_rng(0).choice(n, MOST_IMAGES, replace=False))
        else:
            chosen = np.arange(n)
        x, y, variance = predictions[chosen], mos[chosen], np.square(np.nan_to_num(mos_std[chosen]))
        by_image = _beyond_deviation(x, y, variance)
        total = by_image.sum(axis=0) / 2

        def without_some(rows: NDArray[np.intp]) -> float | None:
            """Return the share for these rows, from all pairs minus the pairs of other images, counted once."""
            others = np.delete(np.arange(len(y)), rows)
            within = _beyond_deviation(x[others], y[others], variance[others]).sum(axis=0) / 2
            return _share(total - by_image[others].sum(axis=0) + within)

        shares = jackknife(without_some, _share(total), blocks[chosen])
    share = share_interval(_share(total), shares, n)
    note = share.note or f"{int(total[0]):,} pairs"
    return replace(share, note="; ".join(filter(None, (note, drawn))))


def _tau(x: Numbers, y: Numbers) -> float | None:
    """Return Kendall's tau-b; ``None`` if either is constant."""
    constant = len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0
    method = "asymptotic" if len(x) > 2 else "exact"  # SciPy's p-value, unused here, fails for two
    return None if constant else float(kendalltau(x, y, method=method).statistic)


def _differing(x: Numbers, y: Numbers) -> Pairs:
    """Return the pairs with different MOS ``y`` and their balance, the numerator of tau-b."""
    counts = [np.unique(values, return_counts=True)[1] for values in (x, y)]
    differing = [(len(y) ** 2 - float(np.square(count).sum())) / 2 for count in counts]
    balance = (_tau(x, y) or 0.0) * np.sqrt(differing[0] * differing[1])
    return np.array([differing[1], np.rint(balance)])


def _beyond_deviation(x: Numbers, y: Numbers, variance: Numbers) -> Pairs:
    """Return for each image its pairs with a difference of MOS ``y`` above the deviation, (N, 2).

    In the order of MOS, each pair is compared once, and the second image is the better one.
    """
    order = np.argsort(y)
    x, y, variance = x[order], y[order], variance[order]
    pairs = np.zeros((len(y), 2))
    for start in range(0, len(y), ROWS_AT_ONCE):
        rows, later = slice(start, start + ROWS_AT_ONCE), slice(start, None)
        away, change = y[later] - y[rows, None], x[later] - x[rows, None]
        counted = (away > 0) & (np.square(away) > variance[rows, None] + variance[later])
        balance = counted * np.sign(change).astype(np.int8)
        for column, table in enumerate((counted.view(np.int8), balance)):
            pairs[rows, column] += table.sum(axis=1, dtype=np.intp)
            pairs[later, column] += table.sum(axis=0, dtype=np.int8)  # sums of at most ROWS_AT_ONCE rows
    return pairs[np.argsort(order)]


def _share(pairs: Pairs) -> float | None:
    """Return the pairs in the right order as a share of those that count, 0..1."""
    return None if pairs[0] == 0 else float((1 + pairs[1] / pairs[0]) / 2)
