"""NOISE-SIGMA: the standard deviation of the noise in an image. Lower is better."""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, single_luma
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import BAND, Luma, around, cell_counts, luma_parts
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import NOISE

BLOCK = 16  # pixels
USUAL = 2.4  # gray levels, where clean photos end


@shared
def noise_sigma(image: Measurable) -> float:
    """Estimate the standard deviation of the noise in luma.

    The residual is Immerkaer's, which is zero on any plane or straight ramp. Its median magnitude is taken in blocks of
    16 x 16 pixels, scaled as for a Gaussian, and the tenth percentile over the blocks that are not clipped is the
    estimate: the noise of the smoothest parts of the scene, without texture. An image over two megapixels is measured
    in parts (see ``statistics.parts``).
    Source: Immerkaer, "Fast noise variance estimation", CVIU 64, 1996.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        0 to about 70 gray levels, lower is better; about 10 % below the true value. Clean photos stay below 2.4.

    Raises:
        ToolError: The array is of another kind.
    """
    blocks = [block_noise(part) for part in luma_parts(image) if min(part.shape) >= 3]
    if not blocks:
        return 0.0
    sigmas = np.concatenate([sigma.ravel() for sigma, _ in blocks])
    clipped = np.concatenate([flags.ravel() for _, flags in blocks])
    return float(np.percentile(sigmas if clipped.all() else sigmas[~clipped], 10))


def block_noise(part: Luma) -> tuple[Luma, NDArray[np.bool_]]:
    """Return the noise of each whole block of 16 x 16 pixels in gray levels, and whether over a tenth of it is clipped.

    (h, w) in, both at least 3; two arrays (rows, columns) out, of one block where it is smaller than a block.
    """
    rough = np.abs(_second_difference(_second_difference(part).T).T)
    inner = part[1:-1, 1:-1]
    sorted_sizes = np.sort(_blocks(rough), axis=-1)
    count = sorted_sizes.shape[-1]
    medians = (sorted_sizes[..., (count - 1) // 2] + sorted_sizes[..., count // 2]) / 2
    clipped = _blocks((inner <= 3) | (inner >= 252)).sum(axis=-1) >= 0.1 * count
    return medians / np.float32(6 * 0.6745), clipped


def _second_difference(plane: Luma) -> Luma:
    difference = plane[:-2] + plane[2:]
    difference -= 2 * plane[1:-1]
    return difference


def _blocks(plane: np.ndarray) -> np.ndarray:
    """Return the whole 16 x 16 blocks, (rows, columns, 256), or all of a smaller plane as one: (1, 1, h * w)."""
    rows, columns = (side // BLOCK for side in plane.shape)
    if not rows or not columns:
        return plane.reshape(1, 1, -1)
    whole = plane[: rows * BLOCK, : columns * BLOCK]
    return whole.reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2).reshape(rows, columns, -1)


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
    measure=noise_sigma,
    is_shared=True,
    map=noise_sigma_map,
    map_end=25.0,
    unit="gray levels",
)
