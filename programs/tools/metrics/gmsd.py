"""GMSD: how unevenly gradients changed from those of a reference. Lower is better."""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, STRIP_PIXELS, Plane, check_pair, gray_levels
from agenticiqa.programs.tools.numerics.similarity import (
    PREWITT,
    dissimilarity,
    framed,
    gradient_magnitude,
    shrink,
)
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
CONSTANT = 170


def gmsd(image: RGB, reference: RGB) -> float:
    """Return the gradient magnitude similarity deviation (GMSD) of the gray levels.

    The standard deviation of the similarity between Prewitt gradients at half resolution, constant 170. It ignores
    color, and brightness except at the border, where the authors' code pads the image with black.
    Source: Xue, Zhang, Mou and Bovik, "Gradient magnitude similarity deviation", IEEE TIP 23(2), 2014.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        0 or more, in practice up to about 0.35, lower is better: 0 for equal gray levels. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (lost,) = _losses(gray_levels(image), gray_levels(reference))
    return float(lost.std(dtype=np.float64, ddof=1))


def gmsd_map(image: RGB, reference: RGB) -> Plane:
    """1 - similarity of the gradients, in 0..1, at half the resolution: (ceil(H / 2), ceil(W / 2)). Raises as gmsd."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (lost,) = framed(_losses, gray_levels(image), gray_levels(reference), 2)
    return lost.astype(np.float64)


def _losses(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> Maps:
    # Most of the work is done at half resolution.
    return whole(_compare, image, reference, margin=2, step=2, pixels=4 * STRIP_PIXELS)


def _compare(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> Maps:
    first, second = (gradient_magnitude(shrink(plane, 2), PREWITT) for plane in (image, reference))
    return (dissimilarity(first, second, CONSTANT),)


TOOL = Tool(
    name="GMSD",
    kind="FR",
    higher_is_better=False,
    raw_range=(0.0, 0.35),
    description="Standard deviation of gradient magnitude similarity; sensitive to local damage.",
    source="Xue et al. 2014, IEEE TIP 23(2)",
    cost_ms=2,
    measure=gmsd,
    map=gmsd_map,
    map_end=0.26,
    smallest=SMALLEST_SIDE,
)
