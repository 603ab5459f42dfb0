"""Figures of pairs of images: Kendall's tau-b, and the share of pairs that are put in the right order.

Both are sums over pairs, so leaving out a content takes its pairs away from sums that are made once.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.intervals import FEWEST_CONTENTS, Interval, correlation_interval, share_interval
from agenticiqa.eval.metrics import Numbers, order_codes, why_undefined

MOST_IMAGES = 10_000  # with deviations of the opinions; of more, so many are drawn with a fixed seed
ROWS_AT_ONCE = 16  # so that a part of the table of pairs stays in the processor's cache
FEW = 300  # images, of which a table of all pairs is faster

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
    undefined, n = why_undefined(predictions, mos), len(predictions)
    std = None if mos_std is None or not np.isfinite(mos_std).any() else np.nan_to_num(mos_std)
    chosen, drawn = np.arange(n), ""
    if std is not None and n > MOST_IMAGES:
        drawn = f"of {MOST_IMAGES:,} images drawn at random"
        chosen = np.sort(np.random.default_rng(0).choice(n, MOST_IMAGES, replace=False))
    deviations = None if std is None else std[chosen]
    total, without = _with_and_without(predictions[chosen], mos[chosen], blocks[chosen], deviations)
    share = share_interval(_share(total), [_share(each) for each in without], n)
    note = share.note or f"{int(total[3]) // 2:,} pairs"
    if drawn:  # tau takes no time that grows with the number of pairs
        total, without = _with_and_without(predictions, mos, blocks, None)
    tau = correlation_interval(_tau(total), [_tau(each) for each in without], n, undefined)
    return tau, replace(share, note="; ".join(filter(None, (note, drawn))))


def _with_and_without(
    x: Numbers, y: Numbers, blocks: NDArray[np.intp], std: Numbers | None
) -> tuple[Sums, list[Sums | None]]:
    """The sums over all pairs, and those without each block; nothing for the latter where there are too few."""
    by_image = _sums(x, y, std)
    total, count = by_image.sum(axis=0), int(blocks.max()) + 1 if len(blocks) else 0
    if count < FEWEST_CONTENTS:
        return total, [None] * count
    left_out: list[Sums | None] = []
    for block in range(count):
        here = np.flatnonzero(blocks == block)
        within = _sums(x[here], y[here], None if std is None else std[here]).sum(axis=0)
        left_out.append(total - 2 * by_image[here].sum(axis=0) + within)
    return total, left_out


def _sums(x: Numbers, y: Numbers, std: Numbers | None) -> Sums:
    """For each image the sums over its pairs with all images, (N, 5)."""
    variance = None if std is None else np.square(std)
    codes = order_codes(x)
    if len(x) <= FEW:
        return _directly(codes, y, variance)
    order = np.argsort(y, kind="stable")
    a, b, v = codes[order], y[order], None if variance is None else variance[order]
    found = np.empty((len(x), 5))
    found[:, 1] = len(x) - np.bincount(codes)[codes]
    lower = _with_lower(a, b, v)
    higher = _with_lower(a.max() - a[::-1], -b[::-1], None if v is None else v[::-1])[::-1]
    found[order[:, None], [[0, 2, 3, 4]]] = lower + higher
    return found


def _directly(codes: NDArray[np.intp], y: Numbers, variance: Numbers | None) -> Sums:
    """``_sums`` from a table of all pairs."""
    sign_x, away = np.sign(codes[:, None] - codes), y[:, None] - y
    sign_y = np.sign(away)
    kept = sign_y != 0 if variance is None else np.square(away) > variance[:, None] + variance
    agree = sign_x * sign_y
    counted = (agree, sign_x != 0, sign_y != 0, kept, agree * kept)
    return np.stack([each.sum(axis=1) for each in counted], axis=1).astype(np.float64)


def _with_lower(codes: NDArray[np.intp], y: Numbers, variance: Numbers | None) -> Sums:
    """The sums but the second, (N, 4), over the pairs of each image with those of a lower opinion; ``y`` ascends.

    By their spread most pairs surely count, or surely do not; only those between are looked at one by one.
    """
    lower = np.searchsorted(y, y)
    agree = _order_of(codes, lower)
    if variance is None:
        return np.stack([agree, lower, lower, agree], axis=1).astype(np.float64)
    sure = _clear_of(y, lower, variance + variance.max())
    possible = _clear_of(y, lower, variance + variance.min())
    counted, right = sure.copy(), _order_of(codes, sure)
    for start in range(0, len(y), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        begin, end = int(sure[rows].min()), int(possible[rows].max())
        kept = np.square(y[rows, None] - y[begin:end]) > variance[rows, None] + variance[begin:end]
        kept &= np.arange(begin, end) >= sure[rows, None]
        kept &= np.arange(begin, end) < lower[rows, None]
        counted[rows] += np.count_nonzero(kept, axis=1)
        right[rows] += np.count_nonzero(kept & (codes[rows, None] > codes[begin:end]), axis=1)
        right[rows] -= np.count_nonzero(kept & (codes[rows, None] < codes[begin:end]), axis=1)
    return np.stack([agree, lower, counted, right], axis=1).astype(np.float64)


def _clear_of(y: Numbers, lower: NDArray[np.intp], limit: Numbers) -> NDArray[np.intp]:
    """How many of the ``lower`` first opinions are so far below each that the squared distance exceeds its limit."""
    low, high = np.zeros_like(lower), lower.copy()
    while (low < high).any():
        middle = (low + high) // 2
        clear = (np.square(y - y[middle]) > limit) & (low < high)
        low, high = np.where(clear, middle + 1, low), np.where(clear, high, np.minimum(middle, high))
    return low


def _order_of(codes: NDArray[np.intp], first: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each image how many of the ``first`` so many have a lower code, minus how many have a higher one."""
    return _below(codes, first, codes) + _below(codes, first, codes + 1) - first


def _below(codes: NDArray[np.intp], first: NDArray[np.intp], limit: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each image how many of the ``first`` so many codes are below its limit.

    The first so many are blocks of a power of two each, by the binary digits of their number; in each a sorted copy is
    searched, so that all takes N log(N)^2 steps.
    """
    n, size = len(codes), 1
    found = np.zeros_like(first)
    while size <= n:
        sorted_blocks = np.sort(np.arange(n) // size * (n + 1) + codes)
        here = np.flatnonzero(first & size)
        begin = first[here] // (2 * size) * (2 * size)
        found[here] += np.searchsorted(sorted_blocks, begin // size * (n + 1) + limit[here]) - begin
        size *= 2
    return found


def _tau(sums: Sums | None) -> float | None:
    if sums is None or sums[1] * sums[2] == 0:
        return None
    return float(np.clip(sums[0] / np.sqrt(sums[1] * sums[2]), -1, 1))


def _share(sums: Sums | None) -> float | None:
    """Right pairs as a share of the counted ones, 0..1."""
    return None if sums is None or sums[3] == 0 else float((1 + sums[4] / sums[3]) / 2)
