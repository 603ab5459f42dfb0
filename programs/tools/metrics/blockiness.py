"""BLOCKINESS: how visible the 8 x 8 grid of JPEG is. Lower is better."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import (
    BAND,
    GRID,
    Luma,
    cell_counts,
    cell_sums,
    luma_bands,
    luma_parts,
    placed,
)
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.categories import COMPRESSION

LARGEST_STEP = 12.0  # gray levels: a larger step is the scene's own edge
FAINT_STEP = 0.5  # gray levels: a grid of fainter steps is hardly visible, however smooth the image is otherwise
USUAL = 1.8  # highest value of uncompressed photos


@shared
def blockiness(image: Measurable) -> float:
    """Return how much stronger luma steps are on an 8 x 8 grid than between its lines, the trace of JPEG.

    A step is its excess over its two neighbors in the row, up to 12 gray levels. The grid may start anywhere, so that
    crops of a compressed image show it too. An image over two megapixels is measured in parts with the same grid (see
    ``statistics.parts``).
    Source: after Wang, Sheikh, Bovik, "No-reference perceptual quality assessment of JPEG compressed images", ICIP
    2002.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        A ratio, lower is better: about 1 without blocking, up to 25. JPEG of quality 60 gets 1.2 to 2.1, of quality 12
        2 to 6.

    Raises:
        ToolError: The array is of another kind.
    """
    parts = luma_parts(image)
    return float(np.mean([grid_ratios(parts, axis).max() for axis in (0, 1)]))


def grid_ratios(parts: Sequence[Luma], axis: int) -> NDArray[np.float64]:
    """Return for each of the eight grids along an axis its mean step over that of the other seven: (8,)."""
    sums, counts = np.zeros(GRID), np.zeros(GRID)
    for part in parts:
        if part.shape[axis] >= 2 * GRID + 3:
            by_line = grid_steps(part, axis).mean(axis=1 - axis, dtype=float)
            phases = np.arange(len(by_line)) % GRID
            sums += np.bincount(phases, by_line, GRID) * part.shape[1 - axis]
            counts += np.bincount(phases, minlength=GRID) * part.shape[1 - axis]
    if not counts.any():
        return np.ones(GRID)
    by_phase = sums / counts
    others = (by_phase.sum() - by_phase) / (GRID - 1)
    return (by_phase + FAINT_STEP) / (others + FAINT_STEP)


def grid_steps(part: Luma, axis: int) -> Luma:
    """Return the excess of each step along an axis over its two neighbors, from the second on: 0..12, three fewer."""
    along = part.T if axis else part
    step = np.abs(along[1:] - along[:-1])
    excess = step[:-2] + step[2:]
    excess *= -0.5
    excess += step[1:-1]
    np.clip(excess, 0, LARGEST_STEP, out=excess)
    return excess.T if axis else excess


def blockiness_map(image: RGB) -> Plane:
    """Return how much stronger luma steps are on the 8 x 8 grid than between its lines, in each cell of 32 x 32 pixels.

    (ceil(H / 32), ceil(W / 32)); what exceeds the ratio that uncompressed photos reach: 0 to about 24. Raises ToolError
    as ``blockiness``.
    """
    check_image(image)
    parts = luma_parts(image)
    ratio = np.zeros(cell_counts(image))
    for axis in (0, 1):
        grid = int(grid_ratios(parts, axis).argmax())
        sums = []
        for band in luma_bands(image, beyond=3 if axis == 0 else 0):
            steps = grid_steps(band, axis)
            lines = np.arange(steps.shape[axis]) % GRID == grid
            on_grid = np.broadcast_to(lines[:, None] if axis == 0 else lines, steps.shape)
            shape = min(len(band), BAND), band.shape[1]
            kinds = (steps * on_grid, on_grid, steps * ~on_grid, ~on_grid)
            sums.append([cell_sums(placed(kind, shape, 0)) for kind in kinds])
        on, on_count, off, off_count = (np.concatenate(rows) for rows in zip(*sums, strict=True))
        ratio += (on / np.maximum(on_count, 1) + FAINT_STEP) / (off / np.maximum(off_count, 1) + FAINT_STEP) / 2
    return np.maximum(ratio - USUAL, 0)


TOOL = Tool(
    name="BLOCKINESS",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 100.0),
    measures=COMPRESSION,
    description="Strength of luma steps on the 8 x 8 grid of JPEG.",
    source="Wang et al. 2000, ICIP, as a ratio",
    cost_ms=4,
    measure=blockiness,
    is_shared=True,
    map=blockiness_map,
    map_end=9.0,
)
