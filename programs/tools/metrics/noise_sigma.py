"""NOISE-SIGMA: the standard deviation of the noise in an image. Lower is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, single_luma
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.statistics.edges import around
from agenticiqa.programs.tools.statistics.noise import BLOCK, block_noise
from agenticiqa.programs.tools.statistics.parts import BAND, cell_counts
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import NOISE

USUAL = 2.4  # gray levels, where clean photos end


def noise_sigma(image: RGB) -> float:
    """Estimate the standard deviation of the noise in luma.

    An image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: Immerkaer, CVIU 64, 1996, on the smoothest blocks; see ``statistics.noise``.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 to about 70 gray levels, lower is better; about 10 % below the true value.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("noise_sigma", image)


def noise_sigma_map(image: RGB) -> Plane:
    """By how many gray levels the noise around each block of 16 x 16 pixels exceeds that of clean photos: 0 to 70.

    (ceil(H / 16), ceil(W / 16)). Texture looks like noise, so the least value of the block and its neighbors counts,
    without clipped blocks. Raises ToolError as ``noise_sigma``.
    """
    check_image(image)
    height, width = image.shape[:2]
    cells = cell_counts(image, BLOCK)
    if min(height, width) < 3:
        return np.zeros(cells)
    rows = max((height - 2) // BLOCK, 1) * BLOCK
    bands = (image[top : min(top + BAND, rows) + 2] for top in range(0, rows, BAND))
    blocks = [block_noise(single_luma(band)) for band in bands]
    sigmas, clipped = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    known = np.where(clipped, np.inf, sigmas.astype(float))
    least = around(np.pad(known, [(0, a - b) for a, b in zip(cells, known.shape, strict=True)], "edge"), np.minimum)
    return np.maximum(np.where(np.isinf(least), 0.0, least) - USUAL, 0)


TOOL = Tool(
    name="NOISE-SIGMA",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 70.0),
    measures=NOISE,
    description="Standard deviation of the noise in gray levels.",
    source="Immerkaer 1996, CVIU 64(2), on the smoothest blocks",
    cost_ms=5,
    measure=SharedMeasure(noise_sigma, loaded_statistic("noise_sigma")),
    map=noise_sigma_map,
    map_end=25.0,
    unit="gray levels",
)
