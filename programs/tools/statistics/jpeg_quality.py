"""Estimate the quality of a JPEG from the quantization tables in its header.

mozjpeg, Photoshop and cameras have other tables than libjpeg. The estimate is the quality at which libjpeg's tables
cause the same error. If a coefficient with standard deviation s is rounded to steps of q, its squared error is about
1 / (12 / q**2 + 1 / s**2). Errors are weighted by a power of libjpeg's step, as coarse steps are for what is seen less.

The deviations were measured on 10 photos of CLIVE at half their size. ``POWER`` and ``CHROMA`` were fitted to
the same photos, so that copies of equal SSIMULACRA2 have equal errors. On 14 other photos (references of LIVE and
TID2013, and 5 of BIQ2021), the mean quality of equal SSIMULACRA2 differs by at most 5 from the estimate, for mozjpeg
15 to 95, flat tables of 3 to 48 and nine presets of Photoshop. For single photos, 96 % differ by at most 8. With
chroma in full resolution (4:4:4, the photos of CLIVE), means differ by at most 8.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# The tables of ITU-T T.81, Annex K, which libjpeg scales by the quality: luma, then chroma.
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
        [17, 18, 24, 47, 99, 99, 99, 99],
        [18, 21, 26, 66, 99, 99, 99, 99],
        [24, 26, 56, 99, 99, 99, 99, 99],
        [47, 66, 99, 99, 99, 99, 99, 99],
        *[[99] * 8] * 4,
    ]
).reshape(2, 64)
# Standard deviations of the DCT coefficients of luma, in levels of 255.
USUAL = np.array(
    [
        [612, 91, 50, 32, 24, 17, 12, 8],
        [84, 42, 29, 21, 16, 13, 9, 7],
        [44, 28, 21, 16, 13, 10, 8, 6],
        [29, 18, 15, 13, 11, 9, 7, 5],
        [20, 14, 12, 10, 9, 7, 6, 4],
        [16, 11, 10, 8, 7, 6, 5, 4],
        [12, 8, 7, 6, 6, 5, 4, 3],
        [9, 6, 5, 5, 4, 4, 3, 2],
    ]
).ravel()
DEVIATIONS = np.stack([USUAL, 0.28 * USUAL])  # luma, then chroma
POWER, CHROMA = -1.2, 3.0  # exponent of the steps, and weight of chroma
WEIGHTS = STANDARD**POWER * np.array([[1.0], [CHROMA]])


def table_quality(luma: Sequence[int], chroma: Sequence[int] | None = None) -> int:
    """Return the quality of libjpeg, 1 to 100, that damages photos as much as these tables.

    Args:
        luma: The table of luma, 64 steps by rows.
        chroma: The table of chroma; ``None`` for a gray JPEG.

    Returns:
        The quality; for tables of libjpeg exactly theirs.
    """
    tables = np.array([luma] if chroma is None else [luma, chroma])
    distances = np.abs(np.log(_errors_of_libjpeg(len(tables)) / _error(tables)))
    return int(np.argmin(distances)) + 1


def _error(steps: NDArray[np.int_]) -> float:
    """Return the weighted error that tables (1 or 2, 64) cause."""
    count = len(steps)
    return float((WEIGHTS[:count] / (12 / steps**2.0 + 1 / DEVIATIONS[:count] ** 2)).sum())


@cache
def _errors_of_libjpeg(count: int) -> Values:
    scales = [5000 // quality if quality < 50 else 200 - 2 * quality for quality in range(1, 101)]
    return np.array([_error(np.clip((STANDARD[:count] * scale + 50) // 100, 1, 255)) for scale in scales])
