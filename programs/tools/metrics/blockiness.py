"""BLOCKINESS: how visible the 8 x 8 grid of JPEG is. Lower is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.statistics.blocking import FAINT_STEP, GRID, grid_ratios, grid_steps
from agenticiqa.programs.tools.statistics.by_name import loaded_statistic, statistic
from agenticiqa.programs.tools.statistics.parts import BAND, cell_counts, cell_sums, luma_bands, luma_parts, placed
from agenticiqa.programs.tools.tool import SharedMeasure, Tool
from agenticiqa.signatures.categories import COMPRESSION

USUAL = 1.8  # highest value of uncompressed photos


def blockiness(image: RGB) -> float:
    """Return how much stronger luma steps are on an 8 x 8 grid than between its lines, the trace of JPEG.

    An image over two megapixels is measured in parts (see ``statistics.parts``).
    Source: after Wang et al., ICIP 2002; see ``statistics.blocking``.

    Args:
        image: uint8 RGB, shape (H, W, 3), any size.

    Returns:
        A ratio, lower is better: about 1 without blocking, up to 25.

    Raises:
        ToolError: The array is of another kind.
    """
    return statistic("blockiness", image)


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
    measure=SharedMeasure(blockiness, loaded_statistic("blockiness")),
    map=blockiness_map,
    map_end=9.0,
)
