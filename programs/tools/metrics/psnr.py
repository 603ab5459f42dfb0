"""PSNR: the pixel error on a logarithmic scale. Higher is better."""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair
from agenticiqa.programs.tools.tool import Tool

CAP = 100.0  # dB
CHUNK = 2**16  # values at a time, few enough for a processor's cache
EXACT = 2**24  # single precision has every whole number up to this


def psnr(image: RGB, reference: RGB) -> float:
    """Return the peak signal-to-noise ratio (PSNR) over all three channels: 10 log10(255^2 / MSE).

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.
        reference: The pristine image, of the same kind and size.

    Returns:
        0 (black against white) to 100 dB, higher is better. 100 dB is the cap and the value of identical images;
        without it, a few single gray levels in a very large image could exceed it. Symmetric.

    Raises:
        ToolError: An array is of another kind, or the sizes differ.
    """
    check_pair(image, reference)
    total = _squared_error(image, reference)
    return min(CAP, 10 * float(np.log10(255**2 * image.size / total))) if total > 0 else CAP


def psnr_map(image: RGB, reference: RGB) -> Plane:
    """Squared error of each pixel, mean of its channels, as a share of 255^2: (H, W) in 0..1. Raises as ``psnr``."""
    check_pair(image, reference)
    (errors,) = whole(_errors, image, reference, margin=0)
    return np.divide(errors, 3 * 255**2, dtype=np.float64)


def _squared_error(image: RGB, reference: RGB) -> float:
    """Return the sum of the squared differences: a whole number, exactly."""
    height, width = image.shape[:2]
    rows = max(1, CHUNK // (3 * width))
    larger, smaller = np.empty((2, rows * width * 3), np.uint8)
    single = np.empty(larger.shape, np.float32)
    total = 0.0
    for top in range(0, height, rows):
        first, second = (pixels[top : top + rows].reshape(-1) for pixels in (image, reference))
        high, low, values = (buffer[: first.size] for buffer in (larger, smaller, single))
        # Bytes are compared before they are converted: four times as many at once.
        np.subtract(np.maximum(first, second, out=high), np.minimum(first, second, out=low), out=high)
        values[:] = high
        total += _sum_of_squares(values)
    return total


def _sum_of_squares(values: NDArray[np.float32]) -> float:
    total = float(np.dot(values, values))
    if total < EXACT:  # no term is negative, so that no partial sum was rounded, in whatever order they were added
        return total
    half = values.size // 2
    return _sum_of_squares(values[:half]) + _sum_of_squares(values[half:])


def _errors(image: RGB, reference: RGB) -> Maps:
    """Return the squared error of each pixel, summed over the channels: whole numbers."""
    difference = image.astype(np.float32)
    difference -= reference
    return (np.square(difference, out=difference) @ np.ones(3, np.float32),)


TOOL = Tool(
    name="PSNR",
    kind="FR",
    higher_is_better=True,
    raw_range=(10.0, 60.0),
    description="Peak signal-to-noise ratio in dB over all three channels; any change of a pixel changes it.",
    source="ITU-T J.247; peak 255",
    cost_ms=1,
    measure=psnr,
    map=psnr_map,
    map_end=0.016,
    unit="dB",
)
