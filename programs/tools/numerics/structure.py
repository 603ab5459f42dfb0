"""The local comparison that SSIM and MS-SSIM share (Wang et al., IEEE TIP 13(4), 2004)."""

from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, correlate, whole
from agenticiqa.programs.tools.numerics.pixels import gaussian

Gray: TypeAlias = NDArray[np.uint8] | Plane32

WINDOW_SIDE = 11
MARGIN = WINDOW_SIDE // 2
WINDOW = tuple(gaussian(WINDOW_SIDE, 1.5).tolist())
MIDDLE_GRAY = np.float32(128)
C1, C2 = np.float32((0.01 * 255) ** 2), np.float32((0.03 * 255) ** 2)


def structure_losses(first: Gray, second: Gray, *, luminance: bool) -> Plane32:
    """Return 1 - SSIM of two planes (H, W) in 0..255, where the 11 x 11 window lies inside: (H - 10, W - 10).

    In 0..2. Without ``luminance``, only the product of contrast and structure is compared.
    """
    (lost,) = whole(partial(_compare, luminance=luminance), first, second, margin=MARGIN)
    return lost[MARGIN:-MARGIN, MARGIN:-MARGIN]


def _compare(first: Gray, second: Gray, *, luminance: bool) -> Maps:
    """Return the loss at every pixel; within five pixels of the border it is meaningless.

    From the moments of the difference, so that equal images lose exactly 0: with d = x - y, the variance of d is
    var(x) + var(y) - 2 cov(x, y). Taken about middle gray, where single precision is at its best.
    """
    height, width = first.shape
    planes = np.empty((height, 4, width), np.float32)
    reference, difference, power, change = (planes[:, index] for index in range(4))
    np.subtract(second, MIDDLE_GRAY, out=reference)
    np.subtract(first, second, out=difference, dtype=np.float32)
    image = np.add(reference, difference, out=power)
    power *= image
    power += np.square(reference, out=change)
    np.square(difference, out=change)

    down = correlate(planes.reshape(height, -1), WINDOW, axis=0)
    means = correlate(down.reshape(-1, width), WINDOW, axis=1).reshape(height - 2 * MARGIN, 4, -1)
    mean, shift, power, lost = (means[:, index] for index in range(4))
    other = mean + shift
    shift *= shift
    lost -= shift
    power -= np.square(mean)
    power -= np.square(other)
    power += C2
    lost /= power
    if luminance:
        mean += MIDDLE_GRAY
        other += MIDDLE_GRAY
        shift /= np.square(mean) + np.square(other) + C1
        lost += shift - lost * shift
    return (np.pad(lost, MARGIN),)
