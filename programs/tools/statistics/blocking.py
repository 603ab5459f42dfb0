"""How visible the 8 x 8 grid of JPEG is, without a reference.

Takes the luma, 0..255, of one or more parts of an image, float32 arrays (h, w) of any size from one pixel up, and
returns one finite float for all of them together.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.statistics.parts import Luma

GRID = 8  # pixels, the block of JPEG
LARGEST_STEP = 12.0  # gray levels: a larger step is the scene's own edge
FAINT_STEP = 0.5  # gray levels: a grid of fainter steps is hardly visible, however smooth the image is otherwise


def blockiness(parts: Sequence[Luma]) -> float:
    """Return the ratio of luma steps on an 8 x 8 grid to those between its lines: about 1 without blocking, up to 25.

    A step is its excess over its two neighbors in the row, up to 12 gray levels. The grid may start anywhere, so that
    crops of a compressed image show it too; it is taken to be the same in all parts. JPEG of quality 60 gets 1.2
    to 2.1, of quality 12 2 to 6.
    Source: after Wang, Sheikh, Bovik, "No-reference perceptual quality assessment of JPEG compressed images", ICIP
    2002.
    """
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
