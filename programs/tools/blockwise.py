"""PIQE: which blocks of an image show distortion, and how much of it there is. Lower is better.

Only blocks with structure count, for there the eye looks. Such a block is impaired when a stretch of its border is
flat, as coding blocks and blur leave it, and noisy when its middle varies almost as much as the whole.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from agenticiqa.programs.tools.naturalness import mscn
from agenticiqa.programs.tools.pixels import RGB, Plane, check_image, grey

SMALLEST = 16
SIDE = 16
SEGMENT = 6
ACTIVE_VARIANCE = 0.1
FLAT_DEVIATION = 0.1


@dataclass(frozen=True)
class BlockMasks:
    """Where PIQE sees what: three boolean arrays (H, W), constant over each 16 x 16 block from the top left.

    ``active`` marks blocks with structure; ``impaired`` those of them with visible artefacts (block edges, blur),
    ``noisy`` those with noise. A block can be both.
    """

    active: NDArray[np.bool_]
    impaired: NDArray[np.bool_]
    noisy: NDArray[np.bool_]


def piqe(image: RGB) -> float:
    """Perception-based Image Quality Evaluator; opinion scores were not used to make it.

    ``image`` is (H, W, 3) uint8 RGB with sides of at least 16 pixels. Gives a value above 0 and at most 100, lower
    is better; 100 also for an image without structure, by definition. Under 20 is called excellent, under 35 good,
    under 50 fair by MATLAB.

    Raises ToolError for a smaller image.
    Source: Venkatanath et al., "Blind image quality evaluation using perception based features", NCC 2015, with the
    details as in MATLAB's piqe.
    """
    blocks, variance = _judge(image)
    distortion = (1 - variance)[blocks.impaired].sum() + variance[blocks.noisy].sum()
    return float(100 * (distortion + 1) / (np.count_nonzero(blocks.active) + 1))


def piqe_masks(image: RGB) -> BlockMasks:
    """Where ``piqe`` sees structure, artefacts and noise. Same image as there; raises ToolError like it."""
    blocks, _ = _judge(image)
    height, width = image.shape[:2]

    def to_pixels(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return flags.repeat(SIDE, axis=0).repeat(SIDE, axis=1)[:height, :width]

    return BlockMasks(to_pixels(blocks.active), to_pixels(blocks.impaired), to_pixels(blocks.noisy))


def _judge(image: RGB) -> tuple[BlockMasks, Plane]:
    """The verdict on each block, and its variance: arrays of shape (ceil(H / 16), ceil(W / 16))."""
    check_image(image, SMALLEST)
    blocks = _blocks(mscn(_full_range(grey(image)), "nearest"))
    variance = blocks.var(axis=(2, 3), ddof=1)
    active = variance > ACTIVE_VARIANCE
    masks = BlockMasks(active, active & _has_flat_border(blocks), active & _is_noisy(blocks, np.sqrt(variance)))
    return masks, variance


def _full_range(plane: Plane) -> Plane:
    """Mirrored at the right and bottom to full blocks, in whole grey levels whose brightest is 255."""
    height, width = plane.shape
    whole = np.pad(plane, ((0, -height % SIDE), (0, -width % SIDE)), mode="symmetric")
    return np.rint(255 * (whole / max(whole.max(), 1)))


def _blocks(plane: Plane) -> NDArray[np.float64]:
    """(H, W) in, (H / 16, W / 16, 16, 16) out."""
    height, width = plane.shape
    return plane.reshape(height // SIDE, SIDE, width // SIDE, SIDE).swapaxes(1, 2)


def _has_flat_border(blocks: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether any 6 neighbouring pixels along one of the block's four edges have nearly one value."""
    edges = np.stack([blocks[:, :, 0], blocks[:, :, -1], blocks[..., 0], blocks[..., -1]], axis=2)
    deviations = sliding_window_view(edges, SEGMENT, axis=-1).std(axis=-1, ddof=1)
    return (deviations < FLAT_DEVIATION).any(axis=(2, 3))


def _is_noisy(blocks: NDArray[np.float64], deviation: Plane) -> NDArray[np.bool_]:
    """Whether the deviation exceeds twice its relative distance from the ratio of centre to surround deviation.

    The centre is the two middle columns. The surround lacks the first of them and the column after the second, as in
    MATLAB, which removes one before it counts off the other.
    """
    middle = SIDE // 2
    centre = blocks[..., [middle - 1, middle]].std(axis=(2, 3), ddof=1)
    surround = np.delete(blocks, [middle - 1, middle + 1], axis=3).std(axis=(2, 3), ddof=1)
    # deviation > 2 |deviation - ratio| / max(deviation, ratio), multiplied out: no division by a flat surround.
    product = deviation * surround
    return deviation * np.maximum(product, centre) > 2 * np.abs(product - centre)
