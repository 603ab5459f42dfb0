"""FSIM with color (FSIMc): similarity to a reference of visually salient features. Higher is better."""

from functools import partial

import numpy as np

from agenticiqa.programs.tools.numerics.filters import Maps
from agenticiqa.programs.tools.numerics.phase import phase_congruency
from agenticiqa.programs.tools.numerics.pixels import RGB, YIQ_WEIGHTS, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import (
    SCHARR,
    color_planes,
    dissimilarity,
    framed,
    gradient_magnitude,
    pool,
    shrink,
    spread,
    working_factor,
)
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
T1, T2, T3 = 0.85, 160, 200  # constants of phase congruency, of gradients, of chroma
CHROMA_EXPONENT = 0.03


def fsim(image: RGB, reference: RGB) -> float:
    """Return the feature similarity with color (FSIMc).

    Similarity of phase congruency, of Scharr gradients of luma, and (with exponent 0.03) of the chroma planes I and
    Q, weighted by phase congruency, so that it counts where the eye looks for structure; the plain mean where
    neither image has any. The images are first reduced to a shorter side of about 256 pixels by block means.
    Source: Zhang, Zhang, Mou and Zhang, "FSIM: a feature similarity index for image quality assessment", IEEE TIP
    20(8), 2011; T1 0.85, T2 160, T3 = T4 = 200.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        In practice 0..1, higher is better: 1 for identical images. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    return 1 - pool(*_losses(image, reference, working_factor(image.shape)))


def fsim_map(image: RGB, reference: RGB) -> Plane:
    """1 - similarity of the features, weighted as FSIM weights it, at its resolution: the mean is about 1 - FSIM.

    Raises ToolError as ``fsim``.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = working_factor(image.shape)
    return spread(*framed(partial(_losses, factor=factor), image, reference, factor))


def _losses(image: RGB, reference: RGB, factor: int) -> Maps:
    """Return 1 - similarity, and the weights."""
    (y1, i1, q1), (y2, i2, q2) = (color_planes(shrink(rgb, factor), YIQ_WEIGHTS) for rgb in (image, reference))
    congruency1, congruency2 = phase_congruency([y1, y2])
    kept = 1 - dissimilarity(congruency1, congruency2, T1)
    kept *= 1 - dissimilarity(gradient_magnitude(y1, SCHARR), gradient_magnitude(y2, SCHARR), T2)
    chroma = (1 - dissimilarity(i1, i2, T3)) * (1 - dissimilarity(q1, q2, T3))
    # Opposite hues make the product negative; the authors keep the real part of its complex power.
    turn = np.where(chroma < 0, np.float32(np.cos(CHROMA_EXPONENT * np.pi)), np.float32(1))
    kept *= np.abs(chroma) ** np.float32(CHROMA_EXPONENT) * turn
    return 1 - kept, np.maximum(congruency1, congruency2)


TOOL = Tool(
    name="FSIM",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.5, 1.0),
    description="Similarity of phase congruency and gradient magnitude.",
    source="Zhang et al. 2011, IEEE TIP 20(8)",
    cost_ms=34,
    measure=fsim,
    map=fsim_map,
    map_end=0.45,
    smallest=SMALLEST_SIDE,
)
