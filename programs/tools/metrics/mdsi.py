"""MDSI: how unevenly edges and chromaticity changed from those of a reference. Lower is better."""

from functools import partial

import numpy as np

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import (
    PREWITT,
    color_planes,
    dissimilarity,
    framed,
    gradient_magnitude,
    shrink,
    working_factor,
)
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
C1, C2, C3 = 140, 55, 550
GRADIENT_SHARE = 0.6

# Luma and two opponent channels of a Gaussian color model, as in the paper.
LHM_WEIGHTS = ((0.2989, 0.5870, 0.1140), (0.30, 0.04, -0.35), (0.34, -0.60, 0.17))


def mdsi(image: RGB, reference: RGB) -> float:
    """Return the mean deviation similarity index (MDSI): how unevenly edges and chromaticity changed.

    The mean deviation of the fourth root of a similarity that is 0.6 gradients (Prewitt, of luma, and of each image
    with the mean of both) and 0.4 chromaticity; at a shorter side of about 256 pixels, by block means. Constants as in
    the paper, and the sum, not the product.
    Source: Nafchi, Shahkolaei, Hedjam and Cheriet, "Mean deviation similarity index: efficient and reliable
    full-reference image quality evaluator", IEEE Access 4, 2016.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        0 to about 0.6, lower is better: 0 for identical images. Not quite symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (lost,) = _losses(image, reference, working_factor(image.shape))
    similarity = 1 - lost
    root = np.sqrt(np.sqrt(np.abs(similarity)))
    # The fourth root of a negative number is complex, and so are the mean and the deviations from it.
    turn = np.where(similarity < 0, np.float32(np.sqrt(0.5)), np.float32(0)) * root
    root = np.where(similarity < 0, turn, root)
    deviation = np.hypot(root - root.mean(dtype=np.float64), turn - turn.mean(dtype=np.float64))
    return float(deviation.mean(dtype=np.float64) ** 0.25)


def mdsi_map(image: RGB, reference: RGB) -> Plane:
    """1 - similarity of edges and color, 0 or more, at MDSI's resolution. Raises ToolError as ``mdsi``."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = working_factor(image.shape)
    (lost,) = framed(partial(_losses, factor=factor), image, reference, factor)
    return np.maximum(lost, 0, dtype=np.float64)


def _losses(image: RGB, reference: RGB, factor: int) -> Maps:
    first, second = (shrink(rgb, factor) for rgb in (image, reference))
    return whole(_compare, first, second, margin=1)


def _compare(image: Plane32, reference: Plane32) -> Maps:
    luma1, h1, m1 = color_planes(image, LHM_WEIGHTS)
    luma2, h2, m2 = color_planes(reference, LHM_WEIGHTS)
    first, second = gradient_magnitude(luma1, PREWITT), gradient_magnitude(luma2, PREWITT)
    both = gradient_magnitude((luma1 + luma2) / 2, PREWITT)
    gradient = dissimilarity(first, second, C1) + dissimilarity(first, both, C2) - dissimilarity(second, both, C2)
    color = np.square(h1 - h2) + np.square(m1 - m2)
    color /= np.square(h1) + np.square(h2) + np.square(m1) + np.square(m2) + np.float32(C3)
    return (GRADIENT_SHARE * gradient + (1 - GRADIENT_SHARE) * color,)


TOOL = Tool(
    name="MDSI",
    kind="FR",
    higher_is_better=False,
    raw_range=(0.0, 0.8),
    description="Deviation of the similarity of gradients and chromaticity.",
    source="Nafchi et al. 2016, IEEE Access 4",
    cost_ms=5,
    measure=mdsi,
    map=mdsi_map,
    map_end=0.27,
    smallest=SMALLEST_SIDE,
)
