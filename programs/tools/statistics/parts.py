"""Select the parts of an image for spatial statistics, and make the smaller copy for networks.

An image of up to two megapixels is read as a whole. A larger one is never scaled down, which would hide noise and
blocking: nine parts of 448 x 448 pixels, spread evenly over it, represent it at its own resolution.

Maps read an image in bands of rows, so that one of any size needs little memory, and sum over cells: squares of 32 x 32
pixels, from the top left; the last ones have fewer pixels.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.images.arrays import reduced
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, single_luma
from agenticiqa.programs.tools.shared import Measurable, shared

Luma: TypeAlias = NDArray[np.float32]

WHOLE_PIXELS = 2_000_000
PART = 448
PARTS_PER_SIDE = 3
GRID = 8  # pixels: parts begin on the grid of JPEG, so that all show it at the same place


def parts_of(image: RGB) -> list[RGB]:
    """Return the parts that represent an image's detail: all of it, or nine squares of a large one."""
    height, width = image.shape[:2]
    if height * width <= WHOLE_PIXELS:
        return [image]
    return [image[top : top + PART, left : left + PART] for top in _starts(height) for left in _starts(width)]


@shared
def luma_parts(image: Measurable) -> list[Luma]:
    """Return the luma, 0..255, of each of these parts: float32 arrays (h, w) of any size from one pixel up."""
    return [single_luma(part) for part in parts_of(image.pixels)]


def whole_luma(image: Measurable) -> Luma | None:
    """Return the luma of all of an image, if the image is small enough to be read as a whole."""
    first, *others = luma_parts(image)
    return None if others else first


WORKING_SIDE = 1024  # pixels of the longer side in networks: a larger image is scaled down to it
SMALLEST_SIDE = 32  # pixels of the shorter side of that copy


def in_working_size(image: RGB) -> RGB:
    """Return the image, or where its longer side exceeds 1024 pixels a smaller copy of it (Lanczos).

    From four times that size on it is first reduced to the means of whole pixels, which takes half the time.
    """
    height, width = image.shape[:2]
    longest = max(height, width)
    if longest <= WORKING_SIDE:
        return image
    size = tuple(max(SMALLEST_SIDE, round(side * WORKING_SIDE / longest)) for side in (width, height))
    factor = max(1, min(width // (2 * size[0]), height // (2 * size[1])))
    smaller = Image.fromarray(reduced(image, factor) if factor > 1 else image)
    box = (0, 0, width / factor, height / factor)
    return np.asarray(smaller.resize(size, Image.Resampling.LANCZOS, box=box))


@shared
def working_copy(image: Measurable) -> RGB:
    """Return ``in_working_size`` of an image's pixels."""
    return in_working_size(image.pixels)


def _starts(side: int) -> list[int]:
    count = min(PARTS_PER_SIDE, -(-side // PART))
    return [int(start) // GRID * GRID for start in np.linspace(0, max(side - PART, 0), count)]


CELL = 32  # pixels
BAND = 4 * CELL  # rows


def luma_bands(image: RGB, beyond: int = 0) -> Iterator[Luma]:
    """Yield the luma of one band of rows after the other, each with ``beyond`` rows of the next."""
    for top in range(0, len(image), BAND):
        yield single_luma(image[top : top + BAND + beyond])


def cell_counts(image: RGB, side: int = CELL) -> tuple[int, int]:
    """Return the rows and columns of cells that an image has: (ceil(H / side), ceil(W / side))."""
    height, width = image.shape[:2]
    return -(-height // side), -(-width // side)


def placed(values: np.ndarray, shape: tuple[int, ...], start: int) -> Plane:
    """Return the values in a plane of that shape from (start, start) on, zeros elsewhere."""
    plane = np.zeros(shape)
    plane[start : start + values.shape[0], start : start + values.shape[1]] = values
    return plane


def cell_sums(plane: Plane) -> Plane:
    """Return the sum of each cell of a plane (h, w): (ceil(h / 32), ceil(w / 32))."""
    rows = np.add.reduceat(plane, np.arange(0, plane.shape[0], CELL), axis=0)
    return np.add.reduceat(rows, np.arange(0, plane.shape[1], CELL), axis=1)


def around(cells: Luma, extreme: np.ufunc) -> Luma:
    """Return the maximum or minimum of each cell and those that touch it."""
    ringed = np.pad(cells, 1, mode="edge")
    rows = extreme(extreme(ringed[:-2], ringed[1:-1]), ringed[2:])
    return extreme(extreme(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])
