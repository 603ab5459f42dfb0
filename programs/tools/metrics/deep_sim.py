"""Full-reference comparison of deep features: where two images look like different things to a recognition network.

The features are those of the learned no-reference model's untouched backbone, compared position by position as in
R. Zhang et al., "The unreasonable effectiveness of deep features as a perceptual metric", CVPR 2018, by their cosine
and without weights fitted to opinions.
"""

import numpy as np

from agenticiqa.programs.tools.metrics.learned_iqa import MODEL, SHA256, SMALLEST, as_input
from agenticiqa.programs.tools.numerics.networks import run_network
from agenticiqa.programs.tools.numerics.pixels import RGB, check_pair

FAINT = 1e-6  # features this weak are equal


def deep_similarity(image: RGB, reference: RGB) -> float:
    """Mean cosine of the features of two images, uint8 RGB of shape (H, W, 3), sides at least 32: 1 if they are equal.

    A feature sees some hundred pixels around its place, too wide for a map of where the damage is. Raises ToolError for
    other arrays, and for a missing or damaged model file.
    """
    check_pair(image, reference, SMALLEST)
    if np.array_equal(image, reference):
        return 1.0
    first, second = (
        run_network(MODEL, SHA256, "late", as_input(pixels))[0].astype(np.float64) for pixels in (image, reference)
    )
    lengths = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    return float((((first * second).sum(axis=0) + FAINT) / (lengths + FAINT)).mean())
