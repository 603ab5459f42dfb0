"""The parts of an image that spatial statistics are taken of.

An image of up to two megapixels is read as a whole. A larger one is never scaled down, which would hide noise and
blocking: nine parts of 448 x 448 pixels, spread evenly over it, stand for it at its own resolution.
"""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB, single_luma

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

Luma: TypeAlias = NDArray[np.float32]

WHOLE_PIXELS = 2_000_000
PART = 448
PARTS_PER_SIDE = 3
GRID = 8  # pixels: parts begin on the grid of JPEG, so that all show it at the same place


def parts_of(image: RGB) -> list[RGB]:
    """The parts that stand for an image's detail: all of it, or nine squares of a large one."""
    height, width = image.shape[:2]
    if height * width <= WHOLE_PIXELS:
        return [image]
    return [image[top : top + PART, left : left + PART] for top in _starts(height) for left in _starts(width)]


def luma_parts(image: RGB) -> list[Luma]:
    """The luma, 0..255, of each of these parts."""
    return [single_luma(part) for part in parts_of(image)]


def loaded_luma_parts(image: "LoadedImage") -> list[Luma]:
    """``luma_parts`` of a loaded image's pixels, computed once per image."""
    return image.memo.once("luma parts", lambda: luma_parts(image.pixels))


def loaded_whole_luma(image: "LoadedImage") -> Luma | None:
    """The luma of all of a loaded image, if it is so small that its statistics are of all of it."""
    first, *others = loaded_luma_parts(image)
    return None if others else first


def _starts(side: int) -> list[int]:
    count = min(PARTS_PER_SIDE, -(-side // PART))
    return [int(start) // GRID * GRID for start in np.linspace(0, max(side - PART, 0), count)]
