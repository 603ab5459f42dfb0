"""Cheap measurements that distinguish photos from drawn, rendered, printed or instrument-made images.

A camera's sensor adds a little noise to every pixel. Computer graphics repeat few colors exactly, in flat areas and
along straight edges. Pages are mostly paper, radiographs and night skies mostly black.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB, single_luma

Pixels = TypeVar("Pixels", RGB, NDArray[np.float32])

MOST_PIXELS = 400_000  # pixels; only a part in the middle of a larger image, and every n-th row and column, are read
BLOCK = 8  # pixels
FLAT, SMOOTH = 2, 8  # gray levels between the darkest and the brightest pixel of a block
EDGE, FAINT = 48, 4  # gray levels of a step between neighbors
DARK, PALE = 24, 225  # luma
FRAME = 0.06  # share of the sides that is the border
NAMES = (
    "top_color", "top_8_colors", "colors", "equal_across", "equal_down", "flat_blocks", "smooth_blocks", "edges",
    "edges_of_steps", "straight_edges", "dark", "pale", "middle", "dark_frame", "pale_frame", "chroma", "chroma_spread",
    "luma_mean", "luma_spread", "skewness", "edges_of_pale", "fine_of_coarse",
)  # fmt: skip


def pictorial(image: RGB, luma: NDArray[np.float32] | None = None) -> NDArray[np.float64]:
    """Return the measurements of ``NAMES``, all finite, of an image of any size: uint8 RGB of shape (H, W, 3).

    Shares are 0 to 1. ``colors`` is the logarithm of the number of distinct colors (5 bits a channel) relative to the
    pixels, ``edges_of_steps`` the share of strong steps among all visible ones, ``straight_edges`` of those along rows
    or columns, ``chroma`` and luma are divided by 255. ``luma`` is the luma of the image, if known.
    """
    part, thin = _middle(image), _thinned(image)
    plane, colors = single_luma(part) if luma is None else np.ascontiguousarray(_middle(luma)), _planes(part)
    tones, thin_colors = plane, colors
    if not part.shape == thin.shape == image.shape:
        tones, thin_colors = single_luma(thin) if luma is None else np.ascontiguousarray(_thinned(luma)), _planes(thin)
    across, down = np.abs(np.diff(plane, axis=1)), np.abs(np.diff(plane, axis=0))
    return np.array(
        [
            *_colors(thin_colors),
            *_steps(colors, plane, across, down),
            *_tones(thin_colors, tones),
            *_texture(plane, across),
        ]
    )


def _middle(image: Pixels) -> Pixels:
    """Return the image, or of a large one the middle, so that details keep their scale."""
    height, width = image.shape[:2]
    if height * width <= MOST_PIXELS:
        return image
    rows = min(height, max(632, MOST_PIXELS // width))
    columns = min(width, MOST_PIXELS // rows)
    top, left = (height - rows) // 2, (width - columns) // 2
    return image[top : top + rows, left : left + columns]


def _thinned(image: Pixels) -> Pixels:
    step = math.ceil(math.sqrt(image.shape[0] * image.shape[1] / MOST_PIXELS))
    return image[::step, ::step]


def _planes(image: RGB) -> NDArray[np.uint8]:
    """Return the channels one after the other, (3, H, W): read several times faster than in turn."""
    return np.ascontiguousarray(np.moveaxis(image, -1, 0))


def _colors(colors: NDArray[np.uint8]) -> Sequence[float]:
    red, green, blue = (colors >> 3).astype(np.uint16)
    counts = np.bincount(((red << 10) | (green << 5) | blue).ravel(), minlength=1 << 15)
    counts = np.sort(counts[counts > 0])
    total = counts.sum()
    return counts[-1] / total, counts[-8:].sum() / total, math.log(len(counts)) / math.log(1 << 15)


def _steps(
    colors: NDArray[np.uint8], plane: NDArray[np.float32], across: NDArray[np.float32], down: NDArray[np.float32]
) -> Sequence[float]:
    ranges = _block_ranges(plane)
    larger, smaller = np.maximum(across[:-1], down[:, :-1]), np.minimum(across[:-1], down[:, :-1])
    strong, visible = larger > EDGE, _count(larger > FAINT)
    straight = _count(strong & (smaller < FAINT))
    return (
        _share((colors[:, :, 1:] == colors[:, :, :-1]).all(axis=0)),
        _share((colors[:, 1:] == colors[:, :-1]).all(axis=0)),
        _share(ranges <= FLAT),
        _share(ranges <= SMOOTH),
        _share(strong),
        _count(strong) / max(visible, 1),
        straight / max(_count(strong), 1),
    )


def _tones(colors: NDArray[np.uint8], plane: NDArray[np.float32]) -> Sequence[float]:
    rows, columns = (max(1, round(FRAME * side)) for side in plane.shape)
    frame = np.concatenate(
        [edge.ravel() for edge in (plane[:rows], plane[-rows:], plane[:, :columns], plane[:, -columns:])]
    )
    red, green, blue = colors
    highest, lowest = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    chroma = (highest - lowest).astype(np.float32)
    dark, pale, spread = _share(plane <= DARK), _share(plane >= PALE), float(plane.std())
    standard = (plane - plane.mean()) / max(spread, 1.0)
    skewness = float((standard * standard * standard).mean())
    return (
        dark, pale, 1 - dark - pale, _share(frame <= DARK), _share(frame >= PALE),
        float(chroma.mean()) / 255, float(chroma.std()) / 255, float(plane.mean()) / 255, spread / 255,
        float(np.clip(skewness, -5, 5)) / 5,
    )  # fmt: skip


def _texture(plane: NDArray[np.float32], across: NDArray[np.float32]) -> Sequence[float]:
    """Return strong steps beside pale pixels, as of ink on paper, and the finest over the next coarser detail."""
    ink = across > EDGE
    beside = np.maximum(plane[:, 1:], plane[:, :-1]) >= PALE
    coarse = np.abs(np.diff((plane[:, 1::2] + plane[:, : plane.shape[1] // 2 * 2 : 2]) / 2, axis=1))
    of_pale = _count(ink & beside) / max(_count(ink), 1)
    return of_pale, math.log((_mean(across) + 0.2) / (_mean(coarse) + 0.2)) / 3


def _block_ranges(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, columns = (max(1, side // BLOCK) for side in plane.shape)
    blocks = plane[: rows * BLOCK, : columns * BLOCK]
    in_rows = blocks.reshape(rows, -1, blocks.shape[1])
    highest, lowest = (
        extreme(extreme(in_rows, axis=1).reshape(rows, columns, -1), axis=2) for extreme in (np.max, np.min)
    )
    return highest - lowest


def _count(chosen: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(chosen))


def _share(chosen: NDArray[np.bool_]) -> float:
    return _count(chosen) / max(chosen.size, 1)


def _mean(values: NDArray[np.float32]) -> float:
    return float(values.mean()) if values.size else 0.0
