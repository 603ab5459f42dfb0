"""MS-SSIM: structural similarity to a reference over five scales. Higher is better."""

from collections.abc import Iterator

import numpy as np

from agenticiqa.programs.tools.metrics.ssim import MARGIN, WINDOW_SIDE, Gray, structure_losses
from agenticiqa.programs.tools.numerics.filters import Plane32
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair, gray_levels
from agenticiqa.programs.tools.numerics.similarity import shrink
from agenticiqa.programs.tools.tool import Tool

WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # weights from the finest scale to the coarsest
SMALLEST_SIDE = WINDOW_SIDE * 2 ** (len(WEIGHTS) - 1)


def ms_ssim(image: RGB, reference: RGB) -> float:
    """Return the multi-scale structural similarity (MS-SSIM) of the gray levels.

    The product over five scales of ``ms_ssim_terms``, each raised to its weight. A scale whose structure is negatively
    correlated on the whole counts as zero, since its power would not be a real number. Wang's code can also take the
    weighted mean of the terms; values made that way are higher for strong distortions (.673 in place of .670).
    Source: Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality assessment", Asilomar 2003,
    eq. 7.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 176 pixels: the window needs 11 at the last scale.
        reference: The pristine image, of the same kind and size.

    Returns:
        0..1, higher is better: 1 for equal gray levels. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 176 pixels.
    """
    terms = np.maximum(ms_ssim_terms(image, reference), 0)
    return float(np.prod(terms ** np.array(WEIGHTS)))


def ms_ssim_map(image: RGB, reference: RGB) -> Plane:
    """1 - the product over the scales at each pixel: (H, W) in 0..1. Raises ToolError as ``ms_ssim``."""
    kept: Plane32 | None = None
    for lost, weight in reversed(list(zip(_losses_by_scale(image, reference), WEIGHTS, strict=True))):
        factor = np.pad(np.maximum(1 - lost, 0) ** np.float32(weight), MARGIN, mode="edge")
        height, width = factor.shape
        if kept is not None:
            factor *= kept.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
        kept = factor
    assert kept is not None
    return np.maximum(1 - kept, 0, dtype=np.float64)


def ms_ssim_terms(image: RGB, reference: RGB) -> Plane:
    """Return the terms of MS-SSIM, from the finest of five scales to the coarsest: shape (5,), each -1..1.

    Mean contrast and structure, at the last scale with luminance as well. From scale to scale the planes are halved
    by averaging 2 x 2 pixels. Raises ToolError as ``ms_ssim``.
    """
    return np.array([1 - lost.mean(dtype=np.float64) for lost in _losses_by_scale(image, reference)])


def _losses_by_scale(image: RGB, reference: RGB) -> Iterator[Plane32]:
    """Yield 1 - similarity of structure at each of the five scales, with luminance at the last one."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    first: Gray = gray_levels(image)
    second: Gray = gray_levels(reference)
    last = len(WEIGHTS) - 1
    for scale in range(len(WEIGHTS)):
        yield structure_losses(first, second, luminance=scale == last)
        if scale < last:
            first, second = shrink(first, 2, border="edge"), shrink(second, 2, border="edge")


TOOL = Tool(
    name="MS-SSIM",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    description="Structural similarity over five scales.",
    source="Wang et al. 2003, Asilomar",
    cost_ms=9,
    measure=ms_ssim,
    map=ms_ssim_map,
    map_end=0.34,
    smallest=SMALLEST_SIDE,
)
