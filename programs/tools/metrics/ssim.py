"""SSIM: structural similarity to a reference. Higher is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.filters import Plane32
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair, gray_levels
from agenticiqa.programs.tools.numerics.structure import MARGIN, WINDOW_SIDE, structure_losses
from agenticiqa.programs.tools.tool import Tool


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
