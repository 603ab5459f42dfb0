"""Maps of statistics: an image read in bands of rows, so that one of any size needs little memory, and sums per cell.

A cell is a square of 32 x 32 pixels, from the top left; the last ones have fewer pixels.
"""

from collections.abc import Iterator

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, single_luma
from agenticiqa.programs.tools.statistics.parts import Luma

CELL = 32  # pixels
BAND = 4 * CELL  # rows


def luma_bands(image: RGB, beyond: int = 0) -> Iterator[Luma]:
    """The luma of one band of rows after the other, each with ``beyond`` rows of the next."""
    for top in range(0, len(image), BAND):
        yield single_luma(image[top : top + BAND + beyond])


def cell_counts(image: RGB, side: int = CELL) -> tuple[int, int]:
    """The rows and columns of cells that an image has: (ceil(H / side), ceil(W / side))."""
    height, width = image.shape[:2]
    return -(-height // side), -(-width // side)


def placed(values: np.ndarray, shape: tuple[int, ...], start: int) -> Plane:
    """The values in a plane of that shape from (start, start) on, zeros elsewhere."""
    plane = np.zeros(shape)
    plane[start : start + values.shape[0], start : start + values.shape[1]] = values
    return plane


def cell_sums(plane: Plane) -> Plane:
    """The sum of each cell of a plane (h, w): (ceil(h / 32), ceil(w / 32))."""
    rows = np.add.reduceat(plane, np.arange(0, plane.shape[0], CELL), axis=0)
    return np.add.reduceat(rows, np.arange(0, plane.shape[1], CELL), axis=1)
