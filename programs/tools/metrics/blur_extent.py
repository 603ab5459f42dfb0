"""BLUR-EXTENT: how blurred an image is. Lower is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.mscn import mirrored
from agenticiqa.programs.tools.statistics.parts import (
    CELL,
    Luma,
    cell_counts,
    cell_sums,
    luma_bands,
    luma_parts,
    placed,
)
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import BLURS

WINDOW = 11  # pixels, as in the paper
USUAL = 0.42  # highest value of sharp photos
FAINT_GRADIENT = 4.0  # magnitude of Sobel's operator, half a gray level per pixel: too little to measure blur


@shared
def blur_extent(image: Measurable) -> float:
    """Return how little the image changes when it is blurred again.

    On Sobel gradients, the worse of the two directions. It compares neighboring pixels, so that scaling an image
    changes the result; an image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: Crete, Dolmiere, Ladret, Nicolas, "The blur effect: perception and estimation with a new no-reference
    perceptual blur metric", SPIE 6492, 2007.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0..1, lower is better: 0 if it changes completely, 1 if not at all (already blurred). Sharp photos lie between
        0.2 and 0.42; a flat image gets 0.

    Raises:
        ToolError: The array is of another kind.
    """
    parts, extents = luma_parts(image), [0.0]
    for axis in (0, 1):
        pairs = [[gradient.sum(dtype=float) for gradient in gradients(part, axis)] for part in parts]
        total, left = np.sum(pairs, axis=0)
        if total > 1e-6:
            extents.append(float(left / total))
    return max(extents)


def gradients(part: Luma, axis: int) -> tuple[Luma, Luma]:
    """Return the magnitude of Sobel's gradient along an axis, and its upper bound after blurring along that axis.

    (h, w) in, two of (h - 3, w - 3) out, for the pixels from (2, 2) on; empty for a part that is smaller than that.
    """
    if min(part.shape) < 4:
        return (np.zeros((0, 0), np.float32),) * 2
    along = part.T if axis else part
    across = along[:, 1:-2] + along[:, 3:]
    across += 2 * along[:, 2:-1]
    before = np.abs(across[3:] - across[1:-2])
    # The gradient of a running mean is the difference of the pixels that enter and those that leave its window.
    reach = WINDOW // 2
    around = across[mirrored(np.arange(1 - reach, len(along) + reach), len(along))]
    pairs = around[1:] + around[:-1]
    after = np.abs(pairs[WINDOW:] - pairs[:-WINDOW])
    after /= WINDOW
    np.minimum(before, after, out=after)
    return (before.T, after.T) if axis else (before, after)


def blur_extent_map(image: RGB) -> Plane:
    """By how much the blur extent of each cell of 32 x 32 pixels exceeds that of sharp photos: 0 to 0.58.

    (ceil(H / 32), ceil(W / 32)); also 0 where gradients are too weak to measure blur. Raises ToolError as
    ``blur_extent``.
    """
    check_image(image)
    worst = np.zeros(cell_counts(image))
    for axis in (0, 1):
        sums = [
            [cell_sums(placed(plane, band.shape, 2)) for plane in gradients(band, axis)] for band in luma_bands(image)
        ]
        total, left = (np.concatenate(rows) for rows in zip(*sums, strict=True))
        extent = np.divide(left, total, out=np.zeros_like(total), where=total > FAINT_GRADIENT * CELL**2)
        np.maximum(worst, extent - USUAL, out=worst)
    return worst


TOOL = Tool(
    name="BLUR-EXTENT",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 1.0),
    measures=BLURS,
    description="How little the gradients change when the image is blurred again.",
    source="Crete et al. 2007, SPIE 6492",
    cost_ms=6,
    measure=blur_extent,
    is_shared=True,
    map=blur_extent_map,
    map_end=0.51,
)
