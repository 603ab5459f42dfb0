"""The loss of an image coded with wavelets when packets are lost, as JPEG 2000 over a fading channel."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

SCALES = 5
CODE_BLOCK = 32  # coefficients of a side


def coarsen(rgb: Values, share: float, rng: np.random.Generator) -> Values:
    """Cut bit planes from a share of the finest code blocks and from fewer of the coarser ones.

    (H, W, C) in, the same out, for any size. A block that is hit keeps the bit planes above a random one, or no bit
    plane. A block that is hit at one share is hit at every greater one; the coarsest image always arrives.
    """
    return _merge(rgb, SCALES, share, rng)


def _merge(values: Values, scales: int, share: float, rng: np.random.Generator) -> Values:
    if scales == 0 or min(values.shape[:2]) < 2:
        return values
    (coarse, right), (below, across) = (_split(half, axis=1) for half in _split(values, axis=0))
    details = [_lossy(band, share * scales / SCALES, rng) for band in (right, below, across)]
    coarse = _merge(coarse, scales - 1, share, rng)
    return _join(_join(coarse, details[0], axis=1), _join(details[1], details[2], axis=1), axis=0)


def _lossy(band: Values, share: float, rng: np.random.Generator) -> Values:
    kept = band.copy()
    for top in range(0, band.shape[0], CODE_BLOCK):
        for left in range(0, band.shape[1], CODE_BLOCK):
            hit, depth = rng.random(2)
            if hit < share:
                block = kept[top : top + CODE_BLOCK, left : left + CODE_BLOCK]
                step = 2.0 ** (3 + 6 * depth)
                whole = np.floor(np.abs(block) / step)
                block[...] = np.where(whole > 0, np.sign(block) * (whole + 0.5) * step, 0)
    return kept


def _split(values: Values, axis: int) -> tuple[Values, Values]:
    """Return the low and high band of LeGall's 5/3 wavelet (reversible, of JPEG 2000) along an axis, by lifting."""
    values = np.moveaxis(values, axis, 0)
    even, odd = values[::2], values[1::2]
    high = odd - (even[: len(odd)] + _following(even, len(odd))) / 2
    low = even + (_preceding(high, len(even)) + _padded(high, len(even))) / 4
    return np.moveaxis(low, 0, axis), np.moveaxis(high, 0, axis)


def _join(low: Values, high: Values, axis: int) -> Values:
    low, high = np.moveaxis(low, axis, 0), np.moveaxis(high, axis, 0)
    even = low - (_preceding(high, len(low)) + _padded(high, len(low))) / 4
    values = np.empty((len(low) + len(high), *low.shape[1:]))
    values[::2] = even
    values[1::2] = high + (even[: len(high)] + _following(even, len(high))) / 2
    return np.moveaxis(values, 0, axis)


def _following(even: Values, count: int) -> Values:
    """Return the even sample after each odd one; at the end, repeat the last."""
    return _padded(even[1:], count) if len(even) > 1 else even[:count]


def _preceding(high: Values, count: int) -> Values:
    """Return the odd sample before each even one; at the start, repeat the first."""
    return np.concatenate([high[:1], high])[:count]


def _padded(values: Values, count: int) -> Values:
    return np.concatenate([values, values[-1:]])[:count]
