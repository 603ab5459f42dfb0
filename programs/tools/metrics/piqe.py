"""PIQE: the number and strength of distorted blocks in an image. Lower is better.

Only blocks with structure count, because viewers look there. A block is impaired when a segment of its border is flat,
as after block coding and blur. It is noisy when its middle varies almost as much as the whole.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, gray_levels
from agenticiqa.programs.tools.statistics.mscn import Scale, band_height, coefficients, mirrored
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 16
SIDE = 16
SEGMENT = 6
ACTIVE_VARIANCE = 0.1
FLAT_DEVIATION = 0.1


@dataclass(frozen=True)
class Verdict:
    """PIQE's findings for each 16 x 16 block from the top left: four arrays of shape (ceil(H / 16), ceil(W / 16)).

    ``active`` marks blocks with structure; ``impaired`` those of them with visible artifacts (block edges, blur),
    ``noisy`` those with noise. A block can be both. ``variance`` is that of the block's normalized brightness.
    """

    active: NDArray[np.bool_]
    impaired: NDArray[np.bool_]
    noisy: NDArray[np.bool_]
    variance: Plane


def piqe(image: RGB) -> float:
    """Compute the Perception-based Image Quality Evaluator (PIQE), which was not fitted to subjective scores.

    Source: Venkatanath et al., "Blind image quality evaluation using perception based features", NCC 2015, with the
    details as in MATLAB's piqe.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 16 pixels.

    Returns:
        Above 0 and at most 100, lower is better; 100 also for an image without structure, by definition. MATLAB calls
        values under 20 excellent, under 35 good and under 50 fair.

    Raises:
        ToolError: The array is of another kind, or a side is under 16 pixels.
    """
    blocks = classify_blocks(image)
    distortion = (1 - blocks.variance)[blocks.impaired].sum() + blocks.variance[blocks.noisy].sum()
    return float(100 * (distortion + 1) / (np.count_nonzero(blocks.active) + 1))


def piqe_map(image: RGB) -> Plane:
    """Return the distortion of each block of 16 x 16 pixels by ``piqe``: (ceil(H / 16), ceil(W / 16)), 0 for none.

    Raises ToolError like it.
    """
    blocks = classify_blocks(image)
    artifacts = np.where(blocks.impaired, np.maximum(1 - blocks.variance, 0), 0)
    return artifacts + np.where(blocks.noisy, blocks.variance, 0)


def classify_blocks(image: RGB) -> Verdict:
    """Return PIQE's findings for each block. Same image as for ``piqe``; raises ToolError like it."""
    check_image(image, SMALLEST_SIDE)
    scale = _full_range(image)
    step = band_height(scale.width, SIDE)
    bands = []
    for top in range(0, scale.height, step):
        band = coefficients(scale, top, min(top + step, scale.height), "edge")
        bands.append(_classify(band.reshape(-1, SIDE, scale.width // SIDE, SIDE)))
    return Verdict(*(np.concatenate(parts) for parts in zip(*bands, strict=True)))


def _full_range(image: RGB) -> Scale:
    """Return the image mirrored at right and bottom to full blocks, in whole gray levels with a maximum of 255."""
    levels = gray_levels(image)
    height, width = levels.shape
    stretched = np.rint(255 * (np.arange(256) / max(levels.max(), 1)))
    across = mirrored(np.arange(width + -width % SIDE), width)

    def rows(top: int, bottom: int) -> Plane:
        return stretched[levels[mirrored(np.arange(top, bottom), height)][:, across]]

    return Scale(height + -height % SIDE, len(across), rows)


def _classify(blocks: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], Plane]:
    """Return the fields of a Verdict for blocks of coefficients, (rows, 16, columns, 16) in."""
    sums, squares = blocks.sum(axis=1), np.einsum("rich,rich->rch", blocks, blocks)
    variance = _variance(sums.sum(axis=-1), squares.sum(axis=-1), SIDE**2)
    # The center is the two middle columns. The surround lacks the first of them and the column after the second, as
    # in MATLAB, which removes one before it counts off the other.
    middle = SIDE // 2
    in_center = np.isin(np.arange(SIDE), [middle - 1, middle])
    in_surround = ~np.isin(np.arange(SIDE), [middle - 1, middle + 1])
    center, surround = (
        np.sqrt(_variance(sums[..., chosen].sum(axis=-1), squares[..., chosen].sum(axis=-1), SIDE * chosen.sum()))
        for chosen in (in_center, in_surround)
    )
    active = variance > ACTIVE_VARIANCE
    return active, active & _has_flat_border(blocks), active & _is_noisy(np.sqrt(variance), center, surround), variance


def _variance(total: Plane, squares: Plane, count: int) -> Plane:
    return np.maximum(squares - total * total / count, 0) / (count - 1)


def _has_flat_border(blocks: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether any 6 neighboring pixels along one of the block's four edges have nearly the same value."""
    sides = [blocks[:, 0], blocks[:, -1], blocks[..., 0].swapaxes(1, 2), blocks[..., -1].swapaxes(1, 2)]
    edges = np.stack(sides, axis=2)
    segments = np.stack([edges[..., first : first + SIDE - SEGMENT + 1] for first in range(SEGMENT)])
    variance = _variance(segments.sum(axis=0), (segments * segments).sum(axis=0), SEGMENT)
    return np.any(variance < FLAT_DEVIATION**2, axis=(2, 3))


def _is_noisy(deviation: Plane, center: Plane, surround: Plane) -> NDArray[np.bool_]:
    """Return whether the deviation exceeds twice its relative distance from the center-surround deviation ratio."""
    # deviation > 2 |deviation - ratio| / max(deviation, ratio), multiplied out: no division by a flat surround.
    product = deviation * surround
    return deviation * np.maximum(product, center) > 2 * np.abs(product - center)


TOOL = Tool(
    name="PIQE",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 100.0),
    description="Share and strength of blocks that look damaged or noisy.",
    source="Venkatanath et al. 2015, NCC",
    cost_ms=12,
    measure=piqe,
    map=piqe_map,
    map_end=0.77,
    smallest=SMALLEST_SIDE,
)
