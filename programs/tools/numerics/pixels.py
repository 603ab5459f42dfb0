"""Prepare the input of metrics: a checked 8-bit RGB array, its luma or gray levels, and Gaussian windows."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError

RGB: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float64]
GrayLevels: TypeAlias = NDArray[np.uint8]

# BT.601 with the digits of MATLAB's rgb2gray: the first row of the inverse of NTSC's YIQ-to-RGB matrix.
LUMA_WEIGHTS = (0.298936021293775, 0.587043074451121, 0.114020904255103)

# NTSC's RGB-to-YIQ matrix to three digits, as the FSIM and HaarPSI papers use it. Y is 0..255, I about -152..152 and
# Q about -133..133; a gray pixel has I = Q = 0.
YIQ_WEIGHTS = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))

STRIP_PIXELS = 3 * 2**14  # pixels that are worked on at once, few enough for a processor's cache


def check_image(image: np.ndarray, smallest: int = 1) -> None:
    """Refuse anything but a uint8 array of shape (H, W, 3) with both sides at least ``smallest`` pixels.

    Raises ToolError: one line with the expected and the given array.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        got = f"{image.dtype} of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise ToolError(f"expected a uint8 array of shape (height, width, 3), got {got}")
    height, width = image.shape[:2]
    if min(height, width) < max(smallest, 1):
        raise ToolError(f"expected sides of at least {max(smallest, 1)} pixels, got {width} x {height}")


def check_pair(image: np.ndarray, reference: np.ndarray, smallest: int = 1) -> None:
    """Refuse a pair that is not two images of one size, each as ``check_image`` wants it. Raises ToolError likewise."""
    check_image(image)
    check_image(reference)
    if image.shape != reference.shape:
        (height, width), (ref_height, ref_width) = image.shape[:2], reference.shape[:2]
        raise ToolError(
            f"expected image and reference of the same size, got {width} x {height} and {ref_width} x {ref_height}"
        )
    check_image(image, smallest)


def luma(rgb: RGB) -> Plane:
    """Return the unrounded BT.601 luma of (H, W, 3) uint8: (H, W) float64 in 0..255. Gray pixels keep their value."""
    return _luma_as(np.dtype(np.float64), rgb)


def single_luma(rgb: RGB) -> NDArray[np.float32]:
    """Return ``luma`` rounded to single precision."""
    return _luma_as(np.dtype(np.float32), rgb)


def _luma_as(dtype: np.dtype[Any], rgb: RGB) -> NDArray[Any]:
    height, width = rgb.shape[:2]
    plane = np.empty((height, width), dtype)
    rows = max(1, STRIP_PIXELS // max(width, 1))
    for top in range(0, height, rows):
        red, green, blue = (weight * rgb[top : top + rows, :, at] for at, weight in enumerate(LUMA_WEIGHTS))
        red += green
        red += blue
        plane[top : top + rows] = red
    return plane


def gray_levels(rgb: RGB) -> GrayLevels:
    """Return the luma of (H, W, 3) uint8 rounded to gray levels, (H, W) uint8, as MATLAB's rgb2gray does.

    Metrics with MATLAB code by their authors are defined on these; without rounding SSIM differs by up to 1e-3.
    In double precision, since single precision rounds 30 of the 16.7 million colors to the wrong side.
    """
    height, width = rgb.shape[:2]
    weights = np.array(LUMA_WEIGHTS)
    levels = np.empty((height, width), np.uint8)
    rows = max(1, STRIP_PIXELS // (3 * width))
    for top in range(0, height, rows):
        strip = rgb[top : top + rows].astype(np.float64) @ weights
        strip += 0.5
        levels[top : top + rows] = strip
    return levels


def gaussian(size: int, sigma: float) -> Plane:
    """Return the ``size`` samples of a Gaussian centered on the middle one, with sum one; ``sigma`` in samples."""
    distance = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(distance**2) / (2 * sigma**2))
    return weights / weights.sum()
