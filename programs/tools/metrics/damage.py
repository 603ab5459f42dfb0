"""Where an image shows what a no-reference measure measures: maps, 0 where nothing is wrong, larger the worse.

Each takes an image as ``measures.take`` does and gives one value per square cell from the top left, (ceil(H / side),
ceil(W / side)), the last ones of fewer pixels. Images are read in bands, so that one of any size needs little memory.
Raises ToolError for anything that is not such an image.
"""

from collections.abc import Iterator

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, luma
from agenticiqa.programs.tools.statistics.edges import around
from agenticiqa.programs.tools.statistics.measures import spatial_parts
from agenticiqa.programs.tools.statistics.spatial import (
    FAINT_STEP,
    GRID,
    NOISE_BLOCK,
    Luma,
    block_noise,
    gradients,
    grid_ratios,
    grid_steps,
)
from agenticiqa.programs.tools.statistics.tonal import BLACK, WHITE, Tone

CELL = 32  # pixels
BAND = 4 * CELL  # rows

# Where sharp, clean and uncompressed photos end, and what is too faint to tell anything about blur.
USUAL_EXTENT = 0.42
USUAL_NOISE = 2.4  # grey levels
USUAL_GRID = 1.8
FAINT_GRADIENT = 4.0  # of Sobel's operator: half a grey level per pixel


def blur_map(image: RGB) -> Plane:
    """By how much the blur extent of each cell of 32 x 32 pixels exceeds that of sharp photos: 0 to 0.58.

    0 also where there is hardly any gradient by which blur could be judged.
    """
    check_image(image)
    worst = np.zeros(_cells(image, CELL))
    for axis in (0, 1):
        found = [[_cell_sums(_placed(each, band.shape, 2)) for each in gradients(band, axis)] for band in _bands(image)]
        total, left = (np.concatenate(rows) for rows in zip(*found, strict=True))
        extent = np.divide(left, total, out=np.zeros_like(total), where=total > FAINT_GRADIENT * CELL**2)
        np.maximum(worst, extent - USUAL_EXTENT, out=worst)
    return worst


def noise_map(image: RGB) -> Plane:
    """By how many grey levels the noise around each block of 16 x 16 pixels exceeds that of clean photos: 0 to 70.

    Texture reads as noise, so the least of the block and those that touch it counts, and clipped ones do not.
    """
    check_image(image)
    height, width = image.shape[:2]
    cells = _cells(image, NOISE_BLOCK)
    if min(height, width) < 3:
        return np.zeros(cells)
    rows = max((height - 2) // NOISE_BLOCK, 1) * NOISE_BLOCK
    found = [block_noise(_luma(image[top : min(top + BAND, rows) + 2])) for top in range(0, rows, BAND)]
    sigmas, clipped = (np.concatenate(each) for each in zip(*found, strict=True))
    known = np.where(clipped, np.inf, sigmas.astype(float))
    least = around(np.pad(known, [(0, a - b) for a, b in zip(cells, known.shape, strict=True)], "edge"), np.minimum)
    return np.maximum(np.where(np.isinf(least), 0.0, least) - USUAL_NOISE, 0)


def blocking_map(image: RGB) -> Plane:
    """How much stronger luma steps are on the 8 x 8 grid than between its lines, in each cell of 32 x 32 pixels.

    What exceeds the ratio that uncompressed photos reach: 0 to about 24.
    """
    check_image(image)
    parts = spatial_parts(image)
    ratio = np.zeros(_cells(image, CELL))
    for axis in (0, 1):
        grid = int(grid_ratios(parts, axis).argmax())
        found = []
        for band in _bands(image, beyond=3 if axis == 0 else 0):
            steps = grid_steps(band, axis)
            lines = np.arange(steps.shape[axis]) % GRID == grid
            on_grid = np.broadcast_to(lines[:, None] if axis == 0 else lines, steps.shape)
            shape = min(len(band), BAND), band.shape[1]
            kinds = (steps * on_grid, on_grid, steps * ~on_grid, ~on_grid)
            found.append([_cell_sums(_placed(kind, shape, 0)) for kind in kinds])
        on, on_count, off, off_count = (np.concatenate(rows) for rows in zip(*found, strict=True))
        ratio += (on / np.maximum(on_count, 1) + FAINT_STEP) / (off / np.maximum(off_count, 1) + FAINT_STEP) / 2
    return np.maximum(ratio - USUAL_GRID, 0)


def clipping_map(image: RGB) -> Plane:
    """Which blocks of 8 x 8 pixels are black or white: 1, else 0."""
    check_image(image)
    found = Tone(image).luma
    return ((found <= BLACK) | (found >= WHITE)).astype(float)


def _luma(image: RGB) -> Luma:
    return luma(image).astype(np.float32)


def _bands(image: RGB, beyond: int = 0) -> Iterator[Luma]:
    """The luma of one band of rows after the other, each with that many rows of the next."""
    for top in range(0, len(image), BAND):
        yield _luma(image[top : top + BAND + beyond])


def _cells(image: RGB, side: int) -> tuple[int, int]:
    height, width = image.shape[:2]
    return -(-height // side), -(-width // side)


def _placed(values: np.ndarray, shape: tuple[int, ...], start: int) -> Plane:
    """The values in a plane of that shape from (start, start) on, among zeros."""
    plane = np.zeros(shape)
    plane[start : start + values.shape[0], start : start + values.shape[1]] = values
    return plane


def _cell_sums(plane: Plane) -> Plane:
    rows = np.add.reduceat(plane, np.arange(0, plane.shape[0], CELL), axis=0)
    return np.add.reduceat(rows, np.arange(0, plane.shape[1], CELL), axis=1)
