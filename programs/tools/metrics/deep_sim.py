"""DEEP-SIM: similarity to a reference of a recognition network's features. Higher is better.

The network is the untouched backbone of LEARNED-IQA.
"""

import numpy as np

from agenticiqa.programs.tools.metrics.learned_iqa import SMALLEST_SIDE, last_stage
from agenticiqa.programs.tools.numerics.pixels import RGB, check_pair
from agenticiqa.programs.tools.tool import Tool

FAINT = 1e-6  # features this weak are equal


def deep_sim(image: RGB, reference: RGB) -> float:
    """Return the mean cosine similarity of a recognition network's features of two images.

    There is no map, because a feature depends on hundreds of pixels around its place.
    Source: after R. Zhang et al., "The unreasonable effectiveness of deep features as a perceptual metric", CVPR 2018
    (LPIPS), by the cosine and without weights fitted to subjective scores.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 32 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        At most 1, higher is better: 1 for identical images.

    Raises:
        ToolError: An array is of another kind, the sizes differ, a side is under 32 pixels, or the model file is
            missing or damaged.
    """
    check_pair(image, reference, SMALLEST_SIDE)
    if np.array_equal(image, reference):
        return 1.0
    first, second = (last_stage(pixels).astype(np.float64) for pixels in (image, reference))
    lengths = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    return float((((first * second).sum(axis=0) + FAINT) / (lengths + FAINT)).mean())


TOOL = Tool(
    name="DEEP-SIM",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    description="Cosine similarity of a recognition network's features at each position.",
    source="this package, after Zhang et al. 2018, CVPR (LPIPS), on EfficientNet-Lite0 and without fitted weights",
    cost_ms=120,
    measure=deep_sim,
    smallest=SMALLEST_SIDE,
)
