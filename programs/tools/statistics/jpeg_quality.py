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

import io
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

Values = NDArray[np.float64]

# Standard deviations of the DCT coefficients of luma by the sum of both frequencies, in levels of 255.
BY_FREQUENCY = np.array([612, 87.4, 45.2, 29.5, 20.7, 15.6, 12.3, 9.3, 7.6, 6.3, 5.6, 4.5, 4, 3, 2])
USUAL = BY_FREQUENCY[np.add.outer(range(8), range(8))].ravel()
DEVIATIONS = np.stack([USUAL, 0.28 * USUAL])  # luma, then chroma
POWER, CHROMA = -1.2, 3.0  # exponent of the steps, and weight of chroma


def quality_in(tables: Mapping[int, Sequence[int]] | None) -> int | None:
    """Return ``table_quality`` of the tables in a header; ``None`` without tables, as in other files than JPEG."""
    return table_quality(tables[0], tables.get(1)) if tables else None


def table_quality(luma: Sequence[int], chroma: Sequence[int] | None = None) -> int:
    """Return the quality of libjpeg, 1 to 100, that damages photos as much as these tables.

    Args:
        luma: The table of luma, 64 steps by rows.
        chroma: The table of chroma; ``None`` for a gray JPEG.

    Returns:
        The quality; for tables of libjpeg exactly theirs.
    """
    tables = np.array([luma] if chroma is None else [luma, chroma], np.float64)
    distances = np.abs(np.log(_errors_of_libjpeg(len(tables)) / _error(tables)))
    return int(np.argmin(distances)) + 1


def _error(steps: Values) -> float:
    """Return the weighted error that tables (1 or 2, 64) cause."""
    count = len(steps)
    weights = _of_libjpeg(50)[:count] ** POWER * np.array([[1.0], [CHROMA]])[:count]
    return float((weights / (12 / steps**2 + 1 / DEVIATIONS[:count] ** 2)).sum())


@cache
def _errors_of_libjpeg(count: int) -> Values:
    return np.array([_error(_of_libjpeg(quality)[:count]) for quality in range(1, 101)])


@cache
def _of_libjpeg(quality: int) -> Values:
    """Return the tables of luma and chroma (2, 64) that libjpeg writes; at 50, those of ITU-T T.81, Annex K."""
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "JPEG", quality=quality)
    buffer.seek(0)
    tables = JpegImageFile(buffer).quantization
    return np.array([tables[0], tables[1]], np.float64)
