"""Find the part of a picture to assess: inside borders of one color.

Bars and frames change a score without changing the quality. A border is distinguished from a
plain sky or a white background by its edge: it has one color up to compression noise, and the picture begins at one
straight line.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenticiqa.signatures.types import Box

Pixels = NDArray[np.uint8]

ONE_COLOR = 8  # 8-bit levels: compression changes nearly all pixels of a border by no more than this
EXACT = 2  # the same for a bar on one side only, which could belong to the scene
NEARLY_WHITE = 245  # a bar on one side only may be a sky from this level on
NEARLY_ALL = 0.98  # share of the pixels of a line
THINNEST = 0.01  # share of the sides
LEAST_DIFFERING = 0.9  # share of a side, within ``DEPTH`` pixels of the border, that must differ from the border
DEPTH = 4
RINGING = 16  # pixels of the border beside the picture, a JPEG color block, that compression changes more:
FAR, FEW = 32, 0.4  # less than this share of a line changes by more than so many levels
MOST_SAMPLES = 2048  # pixels of a line that are examined
SMALLEST = 96  # pixels of a side that remains, which is at least a third of the picture's

_SIDES = ("left", "top", "right", "bottom")


class AssessedPart(NamedTuple):
    """A box in pixels, left, top, right, bottom, and a sentence on why only this part is assessed."""

    box: Box
    sentence: str


def assessed_part(pixels: Pixels) -> AssessedPart | None:
    """Return the part of a picture, uint8 (H, W, 3), to assess; ``None`` for the whole picture, the usual case."""
    height, width = pixels.shape[:2]
    if min(height, width) < SMALLEST:
        return None
    left, top, right, bottom = _inside(pixels)
    sizes = zip(_SIDES, (left, top, width - right, height - bottom), strict=True)
    cut = [f"{name} {size}" for name, size in sizes if size]
    if not cut:
        return None
    box = (left, top, right, bottom)
    size = f"{right - left} x {bottom - top}"
    where = f"Only the box {list(box)} (left, top, right, bottom in pixels), {size}, was assessed"
    return AssessedPart(box, f"{where}: borders of one color ({', '.join(cut)} pixels) were excluded.")


def _inside(pixels: Pixels) -> Box:
    """Return the box inside of borders of one color; the whole picture without such borders."""
    height, width = pixels.shape[:2]
    top, bottom = _ends(pixels)
    if top + bottom >= height:  # an image of one color
        return 0, 0, width, height
    left, right = _ends(_turned(pixels[top : height - bottom]))
    frame = (left, top, width - right, height - bottom)
    bars = (0, top, width, height - bottom), (left, 0, width - right, height)
    return next((box for box in (frame, *bars) if _is_picture(pixels, box)), (0, 0, width, height))


def _turned(pixels: Pixels) -> Pixels:
    return pixels.transpose(1, 0, 2)


def _ends(lines: Pixels) -> tuple[int, int]:
    """Return how many lines, (N, M, 3), at the start and at the end may be a border."""
    lines = lines[:, :: max(1, lines.shape[1] // MOST_SAMPLES)]
    back = lines[::-1]
    first, last = _flat(lines, ONE_COLOR), _flat(back, ONE_COLOR)
    if first and last:
        return first, last
    first, last = (_flat(part, EXACT) if part[0].max() < NEARLY_WHITE else 0 for part in (lines, back))
    return first, last


def _flat(lines: Pixels, tolerance: int) -> int:
    """Return the number of first lines in the single color of the first one; 0 if they are too few."""
    color = _color(lines[0])
    count = 0
    while count < len(lines) and _others(lines[count], color, tolerance).mean() <= 1 - NEARLY_ALL:
        count += 1
    drift = np.abs(_color(lines[count * 3 // 4]) - color).max() if 0 < count < len(lines) else 0
    if count < THINNEST * len(lines) or drift > EXACT:  # else it is a gradient
        return 0
    end = min(count + RINGING, len(lines))
    while count < end and _others(lines[count], color, FAR).mean() < FEW:
        count += 1
    return count


def _color(line: Pixels) -> NDArray[np.int16]:
    return np.median(line, axis=0).astype(np.int16)


def _others(lines: Pixels, color: NDArray[np.int16], tolerance: int) -> NDArray[np.bool_]:
    """Return a mask (..,) of the pixels (.., 3) that differ from a color."""
    return (np.abs(lines - color) > tolerance).any(axis=-1)


def _is_picture(pixels: Pixels, box: Box) -> bool:
    """Return whether the box is large enough to assess alone, and the picture begins at each new side."""
    left, top, right, bottom = box
    height, width = pixels.shape[:2]
    if right - left < max(SMALLEST, width / 3) or bottom - top < max(SMALLEST, height / 3):
        return False
    inner = pixels[top:bottom, left:right]
    sides = (
        (top, inner, pixels[0]),
        (height - bottom, inner[::-1], pixels[-1]),
        (left, _turned(inner), pixels[:, 0]),
        (width - right, _turned(inner)[::-1], pixels[:, -1]),
    )
    return all(
        _others(lines[:DEPTH], _color(edge), ONE_COLOR).any(axis=0).mean() >= LEAST_DIFFERING
        for size, lines, edge in sides
        if size
    )
