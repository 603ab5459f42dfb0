"""Fidelity to a reference by error and by structure: PSNR, SSIM and MS-SSIM. Higher is better for all three."""

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, correlate, strips, whole
from agenticiqa.programs.tools.numerics.maps import grey_levels, shrink
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair, gaussian

Grey: TypeAlias = NDArray[np.uint8] | Plane32

PSNR_CAP = 100.0
WINDOW_SIDE = 11
MARGIN = WINDOW_SIDE // 2
WINDOW = tuple(gaussian(WINDOW_SIDE, 1.5).tolist())
MIDDLE_GREY = np.float32(128)
C1, C2 = np.float32((0.01 * 255) ** 2), np.float32((0.03 * 255) ** 2)
MS_SSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def psnr(image: RGB, reference: RGB) -> float:
    """Peak signal-to-noise ratio in dB over all three channels, 10 log10(255^2 / MSE).

    From 0 (black against white) to the cap of 100 dB, which identical images get and which a few single grey levels
    in a very large image could otherwise pass. Symmetric. Any size.

    Raises ToolError for a pair that is not two uint8 RGB images of one size.
    """
    check_pair(image, reference)
    total = sum(float(errors.sum(dtype=np.float64)) for (errors,) in strips(_errors, image, reference, margin=0))
    return min(PSNR_CAP, 10 * float(np.log10(255**2 * image.size / total))) if total > 0 else PSNR_CAP


def psnr_damage(image: RGB, reference: RGB) -> Plane:
    """Squared error of each pixel, mean of its channels, as a share of 255^2: 0..1. Raises ToolError as psnr does."""
    check_pair(image, reference)
    (errors,) = whole(_errors, image, reference, margin=0)
    return np.divide(errors, 3 * 255**2, dtype=np.float64)


def ssim(image: RGB, reference: RGB) -> float:
    """Structural similarity of the grey levels, at full resolution (no automatic downsampling).

    -1..1, 1 for equal grey levels; colour is not seen. Symmetric. Gaussian window of 11 x 11 with sigma 1.5, wholly
    inside the image; K1 = 0.01, K2 = 0.03 (Wang et al., "Image quality assessment: from error visibility to
    structural similarity", IEEE TIP 13(4), 2004, eq. 13).

    Raises ToolError as psnr does, and for sides under 11 pixels.
    """
    check_pair(image, reference, smallest=WINDOW_SIDE)
    lost = _losses(grey_levels(image), grey_levels(reference), luminance=True)
    return 1 - float(lost.mean(dtype=np.float64))


def ssim_damage(image: RGB, reference: RGB) -> Plane:
    """What each pixel's window lacks of SSIM 1, in 0..2; the border takes the nearest window. Raises as ssim does."""
    check_pair(image, reference, smallest=WINDOW_SIDE)
    lost = _losses(grey_levels(image), grey_levels(reference), luminance=True)
    return np.pad(np.maximum(lost, 0, dtype=np.float64), MARGIN, mode="edge")


def ms_ssim(image: RGB, reference: RGB) -> float:
    """Multi-scale SSIM of the grey levels: 0..1, 1 for equal grey levels. Symmetric.

    The product over five scales of what ms_ssim_terms gives, each raised to its weight (Wang, Simoncelli and Bovik,
    "Multiscale structural similarity for image quality assessment", Asilomar 2003, eq. 7). A scale whose structure
    is negatively correlated on the whole counts as zero, since its power would not be a real number.

    Raises ToolError as psnr does, and for sides under 176 pixels, which leave the window no room at the last scale.
    """
    terms = np.maximum(ms_ssim_terms(image, reference), 0)
    return float(np.prod(terms ** np.array(MS_SSIM_WEIGHTS)))


def ms_ssim_terms(image: RGB, reference: RGB) -> Plane:
    """What MS-SSIM combines, from the finest of five scales to the coarsest: shape (5,), each -1..1.

    Mean contrast and structure, at the last scale with luminance as well. From scale to scale the planes are halved
    by averaging 2 x 2 pixels. Raises ToolError as ms_ssim does.
    """
    return np.array([1 - lost.mean(dtype=np.float64) for lost in _losses_by_scale(image, reference)])


def ms_ssim_damage(image: RGB, reference: RGB) -> Plane:
    """What the product over the scales lacks of 1 at each pixel, in 0..1. Raises ToolError as ms_ssim does."""
    kept: Plane32 | None = None
    for lost, weight in reversed(list(zip(_losses_by_scale(image, reference), MS_SSIM_WEIGHTS, strict=True))):
        factor = np.pad(np.maximum(1 - lost, 0) ** np.float32(weight), MARGIN, mode="edge")
        height, width = factor.shape
        if kept is not None:
            factor *= kept.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
        kept = factor
    assert kept is not None
    return np.maximum(1 - kept, 0, dtype=np.float64)


def _errors(image: RGB, reference: RGB) -> Maps:
    """Squared error of each pixel, summed over the channels: whole numbers."""
    difference = image.astype(np.float32)
    difference -= reference
    return (np.square(difference, out=difference) @ np.ones(3, np.float32),)


def _losses_by_scale(image: RGB, reference: RGB) -> Iterator[Plane32]:
    """What each of the five scales lacks of 1: structure alone, at the last scale luminance too."""
    scales = len(MS_SSIM_WEIGHTS)
    check_pair(image, reference, smallest=WINDOW_SIDE * 2 ** (scales - 1))
    first: Grey = grey_levels(image)
    second: Grey = grey_levels(reference)
    for scale in range(scales):
        yield _losses(first, second, luminance=scale == scales - 1)
        if scale < scales - 1:
            first, second = shrink(first, 2, border="edge"), shrink(second, 2, border="edge")


def _losses(first: Grey, second: Grey, *, luminance: bool) -> Plane32:
    """What SSIM, or its contrast-and-structure alone, lacks of 1 where the window lies inside: (H - 10, W - 10)."""
    (lost,) = whole(partial(_compare, luminance=luminance), first, second, margin=MARGIN)
    return lost[MARGIN:-MARGIN, MARGIN:-MARGIN]


def _compare(first: Grey, second: Grey, *, luminance: bool) -> Maps:
    """The loss at every pixel; within five pixels of the border it is meaningless.

    From the moments of the difference, so that equal images lose exactly 0: with d = x - y the variance of d is what
    2 cov(x, y) lacks of var(x) + var(y). Taken about middle grey, where single precision is at its best.
    """
    height, width = first.shape
    planes = np.empty((height, 4, width), np.float32)
    reference, difference, power, change = (planes[:, index] for index in range(4))
    np.subtract(second, MIDDLE_GREY, out=reference)
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
        mean += MIDDLE_GREY
        other += MIDDLE_GREY
        shift /= np.square(mean) + np.square(other) + C1
        lost += shift - lost * shift
    return (np.pad(lost, MARGIN),)
