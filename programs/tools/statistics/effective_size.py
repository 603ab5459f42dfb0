"""Estimate the resolution that an image's detail needs: an enlarged copy has an empty upper spectrum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.statistics.parts import Luma

WINDOW = 128  # pixels
MOST_PIECES = 4096
DROP = 8.0  # dB below the middle of the spectrum, where detail ends
MIDDLE = slice(3, 16)  # frequencies, of 64
LEAST = 8  # frequency, of 64; lower ones give no result
SMOOTHING = np.ones(5) / 5


def effective_side(parts: Sequence[Luma], longest: int) -> int | None:
    """Return ``effective_share`` of the ``longest`` side in pixels, by the corners and the middle of nine parts."""
    share = effective_share(parts[::2])
    return None if share is None else round(share * longest)


def effective_share(parts: Sequence[Luma]) -> float | None:
    """Return the share of the sides, 0.12 to 1, that the detail in the luma (0..255) of an image's parts needs.

    A copy enlarged twice has about 0.5. The power of photos falls as 1 / f^2 (Field, "Relations between the statistics
    of natural images and the response properties of cortical cells", JOSA A 4(12), 1987); where it drops by 8 dB below
    that, detail ends. Blur does the same: a photo out of focus everywhere has fewer effective pixels. ``None`` for
    parts with a side under 128 pixels.
    """
    ends = [_end(parts, axis) for axis in (0, 1)]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == 2 else None


def _end(parts: Sequence[Luma], axis: int) -> float | None:
    """Return the frequency, as a share of the highest, where detail along an axis ends."""
    lines = [part.T if axis == 0 else part for part in parts if part.shape[axis] >= WINDOW]
    if not lines:
        return None
    step = 1 + sum(map(np.size, lines)) // (WINDOW * MOST_PIECES)  # neighboring lines are much alike
    pieces = np.concatenate([line[::step, : line.shape[1] // WINDOW * WINDOW].reshape(-1, WINDOW) for line in lines])
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * np.hanning(WINDOW).astype(np.float32)
    power: NDArray[np.float32] = np.abs(np.fft.rfft(pieces, axis=1)[:, 1:]) ** 2
    strength = power[:, 1:].sum(axis=1)
    frequencies = np.arange(1, WINDOW // 2 + 1)
    level = 10 * np.log10(power[strength >= np.median(strength)].mean(axis=0) * frequencies**2 + 1e-9)
    level = np.convolve(np.pad(level, 2, mode="edge"), SMOOTHING, "valid")
    ended = np.flatnonzero((level < np.median(level[MIDDLE]) - DROP) & (frequencies >= LEAST))
    return float(frequencies[ended[0]] / frequencies[-1]) if len(ended) else 1.0
