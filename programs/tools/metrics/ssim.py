"""SSIM: structural similarity to a reference. Higher is better."""

from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, correlate, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair, gaussian, gray_levels
from agenticiqa.programs.tools.tool import Tool

Gray: TypeAlias = NDArray[np.uint8] | Plane32

WINDOW_SIDE = 11
MARGIN = WINDOW_SIDE // 2
WINDOW = tuple(gaussian(WINDOW_SIDE, 1.5).tolist())
MIDDLE_GRAY = np.float32(128)
C1, C2 = np.float32((0.01 * 255) ** 2), np.float32((0.03 * 255) ** 2)


def ssim(image: RGB, reference: RGB) -> float:
    """Return the structural similarity (SSIM) of the gray levels, at full resolution (no automatic downsampling).

    Gaussian window of 11 x 11 with sigma 1.5, wholly inside the image; K1 = 0.01, K2 = 0.03. Color is ignored.
    Source: Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to structural
    similarity", IEEE TIP 13(4), 2004, eq. 13.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 11 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        -1..1, higher is better: 1 for equal gray levels. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 11 pixels.
    """
    return 1 - float(_losses(image, reference).mean(dtype=np.float64))


def ssim_map(image: RGB, reference: RGB) -> Plane:
    """1 - SSIM of the window around each pixel: (H, W) in 0..2; the border takes the nearest window. Raises as ssim."""
    return np.pad(np.maximum(_losses(image, reference), 0, dtype=np.float64), MARGIN, mode="edge")


def _losses(image: RGB, reference: RGB) -> Plane32:
    check_pair(image, reference, smallest=WINDOW_SIDE)
    return structure_losses(gray_levels(image), gray_levels(reference), luminance=True)


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


TOOL = Tool(
    name="SSIM",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    description="Structural similarity of local luma patterns.",
    source="Wang et al. 2004, IEEE TIP 13(4)",
    cost_ms=7,
    measure=ssim,
    map=ssim_map,
    map_end=0.71,
    smallest=WINDOW_SIDE,
)
