"""What every embedded metric starts from: a checked 8-bit RGB array, its luma or YIQ planes, and Gaussian windows."""

from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError

RGB: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float64]

# BT.601 with the digits of MATLAB's rgb2gray: the first row of the inverse of NTSC's YIQ-to-RGB matrix.
LUMA_WEIGHTS = (0.298936021293775, 0.587043074451121, 0.114020904255103)

# NTSC's RGB-to-YIQ matrix to three digits, as the FSIM and HaarPSI papers use it.
YIQ_WEIGHTS = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))


def check_image(image: np.ndarray, smallest: int = 1) -> None:
    """Refuse anything but a uint8 array of shape (H, W, 3) with both sides at least ``smallest`` pixels.

    Raises ToolError: one line with what was expected and what came.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        got = f"{image.dtype} of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise ToolError(f"expected a uint8 array of shape (height, width, 3), got {got}")
    height, width = image.shape[:2]
    if min(height, width) < max(smallest, 1):
        raise ToolError(f"expected sides of at least {max(smallest, 1)} pixels, got {width} x {height}")


def check_pair(image: np.ndarray, reference: np.ndarray, smallest: int = 1) -> None:
    """Refuse a pair that is not two images of one size, each as check_image wants it. Raises ToolError likewise."""
    check_image(image)
    check_image(reference)
    if image.shape != reference.shape:
        (height, width), (ref_height, ref_width) = image.shape[:2], reference.shape[:2]
        raise ToolError(
            f"expected image and reference of the same size, got {width} x {height} and {ref_width} x {ref_height}"
        )
    check_image(image, smallest)


def luma(rgb: RGB) -> Plane:
    """BT.601 luma, not rounded: (H, W, 3) uint8 in, (H, W) float64 in 0..255 out. Grey pixels keep their value."""
    return _weighted(rgb, LUMA_WEIGHTS)


def grey(rgb: RGB) -> Plane:
    """Luma in whole grey levels, what MATLAB's rgb2gray makes of 8-bit RGB: (H, W) float64 in 0, 1, .. 255.

    The metrics whose authors published MATLAB code were defined on these; rounding moves SSIM by up to 1e-3.
    """
    plane = luma(rgb)
    np.rint(plane, out=plane)
    return plane


def yiq(rgb: NDArray[np.uint8] | NDArray[np.float64]) -> tuple[Plane, Plane, Plane]:
    """Brightness Y in 0..255 and the chroma planes I (about -152..152) and Q (about -133..133); grey has I = Q = 0."""
    y, i, q = (_weighted(rgb, weights) for weights in YIQ_WEIGHTS)
    return y, i, q


def gaussian(size: int, sigma: float) -> Plane:
    """The ``size`` samples of a Gaussian centred on the middle one, with sum one; ``sigma`` in samples."""
    distance = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(distance**2) / (2 * sigma**2))
    return weights / weights.sum()


def filter_valid(plane: Plane, weights: Plane) -> Plane:
    """Filter rows and columns with the same symmetric odd window, where it lies wholly inside the plane.

    (H, W) in, (H - n + 1, W - n + 1) out for a window of n samples.
    """
    margin = len(weights) // 2
    height, width = plane.shape
    down = scipy.ndimage.correlate1d(plane, weights, axis=0)[margin : height - margin]
    return scipy.ndimage.correlate1d(down, weights, axis=1)[:, margin : width - margin]


def _weighted(rgb: NDArray[np.uint8] | NDArray[np.float64], weights: tuple[float, float, float]) -> Plane:
    plane = np.zeros(rgb.shape[:2])
    for channel, weight in enumerate(weights):
        plane += weight * rgb[..., channel]
    return plane
