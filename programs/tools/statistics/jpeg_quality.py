"""Estimate the quality of a JPEG from the quantization table in its header."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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


def table_quality(table: Sequence[int]) -> int:
    """Return the quality, 1 to 100, of the table nearest to a luma table of 64 entries in any order."""
    entries = np.sort(np.asarray(table))
    distances = [np.abs(np.log(np.sort(_table(quality)) / entries)).sum() for quality in range(1, 101)]
    return int(np.argmin(distances)) + 1


def _table(quality: int) -> NDArray[np.int_]:
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return np.clip((STANDARD * scale + 50) // 100, 1, 255)
