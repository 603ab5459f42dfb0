"""Estimate an image's earlier JPEG quality from its pixels, in any file format.

JPEG rounds the cosine coefficients of 8 x 8 blocks to multiples of the entries of its quantization table. Decoded
pixels still have coefficients near those multiples, for as long as they are neither scaled nor filtered.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn

from agenticiqa.programs.tools.statistics.blocking import GRID, grid_ratios
from agenticiqa.programs.tools.statistics.parts import Luma

# The luma table of ITU-T T.81, Annex K, which libjpeg scales by the quality.
STANDARD = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
).ravel()
QUALITIES = range(5, 99)  # at 99 and 100 coefficients are only rounded to whole numbers
LARGEST = 256  # of the examined coefficients
BINS = 8  # for one unit of a coefficient
ROUNDING = 0.35  # standard deviation of a coefficient from its multiple: pixels were rounded to whole levels
STRAY = 0.1  # share of coefficients that lie anywhere, where pixels were clipped
FEWEST_BLOCKS = 64


def past_quality(parts: Sequence[Luma]) -> int | None:
    """Return the JPEG quality, libjpeg's 5 to 98, that the luma (0..255) of an image's parts shows, or ``None``.

    The likelihood of the coefficients under each quality's table (Fan and de Queiroz, "Identification of bitmap
    compression history", IEEE TIP 12(2), 2003), against coefficients that lie anywhere. A cropped image is tried at the
    offset of its grid. For an image that was compressed twice, it is the lower quality if that left more trace.
    """
    offsets = dict.fromkeys([(0, 0), tuple((int(grid_ratios(parts, axis).argmax()) + 2) % GRID for axis in (0, 1))])
    found = [_most_likely(parts, *offset) for offset in offsets]
    gain, quality = max(found)
    return quality if gain > 0 else None


def table_quality(table: Sequence[int]) -> int:
    """Return the quality, 1 to 100, of the table nearest to a luma table of 64 entries in any order."""
    given = np.sort(np.asarray(table))
    distances = [np.abs(np.log(np.sort(_table(quality)) / given)).sum() for quality in range(1, 101)]
    return int(np.argmin(distances)) + 1


def _table(quality: int) -> NDArray[np.int_]:
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return np.clip((STANDARD * scale + 50) // 100, 1, 255)


def _most_likely(parts: Sequence[Luma], top: int, left: int) -> tuple[float, int]:
    """Return the gain in log-likelihood of the best quality, and that quality, for a grid that begins at this pixel."""
    if sum(((len(part) - top) // GRID) * ((part.shape[1] - left) // GRID) for part in parts) < FEWEST_BLOCKS:
        return 0.0, 0
    counts = sum((_histograms(part[top:, left:]) for part in parts), np.zeros((64, LARGEST * BINS)))
    gains = counts @ _gains().T  # by place in the block, and step
    by_quality = [float(gains[np.arange(64), _table(quality) - 1].sum()) for quality in QUALITIES]
    best = int(np.argmax(by_quality))
    return by_quality[best], QUALITIES[best]


def _histograms(luma: Luma) -> NDArray[np.float64]:
    """Return how often each magnitude of a coefficient occurs, for each of the 64 places in a block."""
    rows, columns = (side // GRID for side in luma.shape)
    blocks = luma[: rows * GRID, : columns * GRID].reshape(rows, GRID, columns, GRID).swapaxes(1, 2) - np.float32(128)
    magnitudes = np.abs(dctn(blocks, axes=(2, 3), norm="ortho")).reshape(-1, 64)
    bins = np.minimum((magnitudes * BINS).astype(np.int64), LARGEST * BINS - 1) + np.arange(64) * LARGEST * BINS
    counts = np.bincount(bins.ravel(), minlength=64 * LARGEST * BINS).reshape(64, -1).astype(np.float64)
    counts[:, -1] = 0  # larger ones
    return counts


@lru_cache(maxsize=1)
def _gains() -> NDArray[np.float64]:
    """Return, by rounding step (1 to 255) and bin, the log-likelihood against a magnitude that lies anywhere.

    Magnitudes that the step rounds to 0 count nothing: in smooth photos they are small anyway.
    """
    values = (np.arange(LARGEST * BINS) + 0.5) / BINS
    steps = np.arange(1, 256)[:, None]
    away = values - np.rint(values / steps) * steps
    near = np.exp(-(away**2) / (2 * ROUNDING**2)) / (np.sqrt(2 * np.pi) * ROUNDING)
    gains = np.log(steps * (1 - STRAY) * near + STRAY)
    gains[values < steps / 2] = 0
    gains[0] = 0  # a step of 1 rounds nothing
    return gains
