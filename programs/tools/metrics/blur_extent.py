"""BLUR-EXTENT: how blurred an image is. Lower is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.statistics.blur import gradients
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.statistics.parts import CELL, cell_counts, cell_sums, luma_bands, placed
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import BLURS

USUAL = 0.42  # highest value of sharp photos
FAINT_GRADIENT = 4.0  # magnitude of Sobel's operator, half a gray level per pixel: too little to measure blur


def blur_extent(image: RGB) -> float:
    """Return how little the image changes when it is blurred again.

    An image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: Crete et al., SPIE 6492, 2007; see ``statistics.blur``.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0..1, lower is better: 0 if it changes completely, 1 if not at all (already blurred). A flat image gets 0.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("blur_extent", image)


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
    measure=SharedMeasure(blur_extent, loaded_statistic("blur_extent")),
    map=blur_extent_map,
    map_end=0.51,
)
