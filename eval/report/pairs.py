"""Figures of pairs of images: Kendall's tau-b, and the share of pairs that are put in the right order.

Both are sums over pairs, so leaving out a content takes its pairs away from sums that are made once.
"""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.intervals import FEWEST_CONTENTS, Interval, correlation_interval
from agenticiqa.eval.metrics import Numbers, order_codes, why_undefined

MOST_IMAGES = 10_000  # of more, so many are drawn with a fixed seed
ROWS_AT_ONCE = 16  # so that a part of the table of pairs stays in the processor's cache

Sums = NDArray[np.float64]  # (.., 5): concordant minus discordant, not tied in x, in y; counted, right among these


def pair_intervals(
    predictions: Numbers, mos: Numbers, blocks: NDArray[np.intp], mos_std: Numbers | None = None
) -> tuple[Interval, Interval]:
    """Kendall's tau-b, and the share of pairs, 0..1, whose order agrees with people (equal predictions: one half).

    Of the share, a pair counts if its opinions differ, or with ``mos_std`` (the opinions' standard deviations, on the
    same scale; NaN where unknown counts as 0) by more than the standard deviation of the difference,
    ``sqrt(std_i^2 + std_j^2)``. ``n`` of an interval is the number of images; of the share the note has the pairs.
    Arrays are (N,), ``blocks`` as ``intervals.blocks_of`` gives them.
    """
    undefined, drawn = why_undefined(predictions, mos), ""
    n = len(predictions)
    if n > MOST_IMAGES:
        drawn = f"of {MOST_IMAGES:,} images drawn at random"
        chosen = np.sort(np.random.default_rng(0).choice(n, MOST_IMAGES, replace=False))
        predictions, mos, blocks = predictions[chosen], mos[chosen], blocks[chosen]
        mos_std = None if mos_std is None else mos_std[chosen]
    std = None if mos_std is None or not np.isfinite(mos_std).any() else np.nan_to_num(mos_std)
    by_image = _sums(predictions, mos, std)
    total = by_image.sum(axis=0)
    without = []
    count = int(blocks.max()) + 1 if len(blocks) else 0
    for block in range(count if count >= FEWEST_CONTENTS else 0):
        here = np.flatnonzero(blocks == block)
        within = _sums(predictions[here], mos[here], None if std is None else std[here]).sum(axis=0)
        without.append(total - 2 * by_image[here].sum(axis=0) + within)
    left_out: list[Sums | None] = [*without] or [None] * count
    tau = correlation_interval(_tau(total), [_tau(each) for each in left_out], n, undefined)
    order = correlation_interval(_order(total), [_order(each) for each in left_out], n, undefined)
    share = Interval(
        _share(order.value), _share(order.low), _share(order.high), n, order.note or f"{int(total[3]) // 2:,} pairs"
    )
    return _noted(tau, drawn), _noted(share, drawn)


def _sums(x: Numbers, y: Numbers, std: Numbers | None) -> Sums:
    """For each image the sums over its pairs with all images, (N, 5)."""
    n = len(x)
    codes_x, codes_y = order_codes(x), order_codes(y)
    found = np.zeros((n, 5))
    found[:, 1] = n - np.bincount(codes_x)[codes_x]
    found[:, 2] = n - np.bincount(codes_y)[codes_y]
    a, b = (codes.astype(np.uint16) for codes in (codes_x, codes_y))  # MOST_IMAGES of them at most
    variance = None if std is None else np.square(std)
    for start in range(0, n, ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        above_x, below_x = a[rows, None] > a, a[rows, None] < a
        above_y, below_y = b[rows, None] > b, b[rows, None] < b
        right, wrong = above_x & above_y | below_x & below_y, above_x & below_y | below_x & above_y
        found[rows, 0] = _counts(right) - _counts(wrong)
        if variance is not None:
            counted = np.square(y[rows, None] - y) > variance[rows, None] + variance
            found[rows, 3] = _counts(counted)
            found[rows, 4] = _counts(right & counted) - _counts(wrong & counted)
    if variance is None:
        found[:, 3:] = found[:, [2, 0]]
    return found


def _counts(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many are true in each row, eight at a time; ``numpy.count_nonzero`` of rows takes several times as long."""
    whole = flags.shape[1] // 8 * 8
    eights = np.ascontiguousarray(flags[:, :whole]).view(np.uint64)
    counts: NDArray[np.int64] = np.bitwise_count(eights).sum(axis=1, dtype=np.int64)
    return counts + flags[:, whole:].sum(axis=1)


def _tau(sums: Sums | None) -> float | None:
    if sums is None or sums[1] * sums[2] == 0:
        return None
    return float(np.clip(sums[0] / np.sqrt(sums[1] * sums[2]), -1, 1))


def _order(sums: Sums | None) -> float | None:
    """Right minus wrong pairs as a share of the counted ones, -1..1."""
    return None if sums is None or sums[3] == 0 else float(sums[4] / sums[3])


def _share(order: float | None) -> float | None:
    return None if order is None else (1 + order) / 2


def _noted(found: Interval, drawn: str) -> Interval:
    note = "; ".join(filter(None, (found.note, drawn)))
    return Interval(found.value, found.low, found.high, found.n, note)
