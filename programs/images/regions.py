"""Regions as boxes in pixels: places in the frame by their names, and crops of boxes.

A box is (left, top, right, bottom): left and top inside, right and bottom just outside, as Pillow and numpy have it.
"""

import math
import re
from collections.abc import Sequence

from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.signatures.types import Box, Boxes

SMALLEST = 96  # pixels: the measures of noise, blur and blocking need some blocks and edges
LONGEST_NAME = 200  # characters of a region that is a place in the frame

_PLACES: dict[str, tuple[int, int]] = {  # axis (0: across, 1: down), end (0: left or top, 1: right or bottom)
    "left": (0, 0),
    "right": (0, 1),
    "top": (1, 0),
    "upper": (1, 0),
    "bottom": (1, 1),
    "lower": (1, 1),
}
_CENTER = frozenset({"centre", "center", "middle", "central"})
_SHARES = {"half": 1 / 2, "third": 1 / 3, "corner": 1 / 3, "edge": 1 / 4, "border": 1 / 4}
_VAGUE = frozenset({"side", "part", "area", "region", "portion", "section", "quadrant", "bit"})
PLACE_NOUNS = frozenset({*_SHARES, *_VAGUE, "quarter"})
PICTURES = (
    "image|picture|pic|photo|photograph|frame|scene|shot|snapshot|screenshot|scan|print|poster|banner|page|slide|screen"
    "|micrograph|radiograph|x-?ray|exhibit|portrait|panorama|footage|still|view|thumbnail"
)
OF_THE_FRAME = re.compile(rf"(?<!\s)\s++of\s++(?:the|this|my|our)\s++(?:{PICTURES})\b", re.I)


def place_in_frame(region: str, size: tuple[int, int]) -> Box | None:
    """Return the box of a region named by its place in the frame; ``None`` for every other name.

    ``size`` is (width, height). "Left half", "top third", "bottom right quarter" mean what they say; "top left",
    "right side" and the like mean the half on each axis that they name, a corner is a third of each side, an edge a
    quarter, and the center is the middle half of each.

    >>> place_in_frame("left half", (640, 480)), place_in_frame("left building", (640, 480))
    ((0, 0, 320, 480), None)
    """
    if len(region) > LONGEST_NAME:
        return None
    *words, last = re.findall(r"[a-z]+", OF_THE_FRAME.sub("", region.lower()).replace("-hand", "")) or [""]
    noun = last if last in PLACE_NOUNS else ""
    places = [word for word in (*words, *([] if noun else [last])) if word != "the"]
    known = [_PLACES[word] for word in places if word in _PLACES]
    central = any(word in _CENTER for word in places)
    ends = dict(known)
    unknown = not all(word in _PLACES or word in _CENTER for word in places)
    if unknown or len(ends) < len(known) or not (known or central) or (noun == "corner" and len(ends) < 2):
        return None
    share = _SHARES.get(noun, 1 / 2)
    if noun == "quarter" and len(ends) == 1 and not central:
        share = 1 / 4
    spans = [
        _span(share, ends[axis]) if axis in ends else ((1 - share) / 2, (1 + share) / 2) if central else (0.0, 1.0)
        for axis in (0, 1)
    ]
    return in_pixels([edge for edges in zip(*spans, strict=True) for edge in edges], size)


def in_pixels(edges: Sequence[float], size: tuple[int, int], whole: float = 1.0) -> Box:
    """Return the pixels that a box in shares of width and height touches; ``whole`` is the share of a full side.

    ``edges`` are left, top, right, bottom in 0..whole, with left < right and top < bottom.
    """
    left, top, right, bottom = (edge / whole * extent for edge, extent in zip(edges, (*size, *size), strict=True))
    slack = 1e-6  # pixels, so that a rounding error does not take in another column
    return (
        math.floor(left + slack),
        math.floor(top + slack),
        max(math.ceil(right - slack), math.floor(left + slack) + 1),
        max(math.ceil(bottom - slack), math.floor(top + slack) + 1),
    )


def grown(box: Box, size: tuple[int, int], smallest: int = SMALLEST) -> Box:
    """Return the box grown around its center to at least ``smallest`` pixels a side, or the image's whole side."""
    left, right = _grown_side(box[0], box[2], size[0], smallest)
    top, bottom = _grown_side(box[1], box[3], size[1], smallest)
    return left, top, right, bottom


def crop(image: LoadedImage, box: Box | None, smallest: int = SMALLEST) -> LoadedImage:
    """Return the part of an image in a box, grown as ``grown`` does; without a box, the assessed part of the image.

    The same part is always the same object, so that it is measured only once. ``data`` stays that of the whole image.
    """
    if box is None:
        return image.assessed
    area = grown(box, image.size, smallest)
    if area == (0, 0, *image.size):
        return image
    left, top, right, bottom = area
    return image.memo.once(
        ("crop", area), lambda: image.changed(pixels=image.pixels[top:bottom, left:right], assessed_box=None)
    )


def account(boxes: Boxes, size: tuple[int, int]) -> list[str]:
    """Return a sentence for each region that has a box: its place, and the size of the measured crop."""
    width, height = size
    sentences = []
    for region, box in boxes.items():
        if box:
            area = grown(box, size)
            how = "" if area == box else f", enlarged to {_extent(area)} for measuring"
            sentences.append(
                f"The box of {region} is {list(box)} (left, top, right, bottom in pixels): {_extent(box)} of "
                f"{width} x {height}{how}."
            )
    return sentences


def _extent(box: Box) -> str:
    return f"{box[2] - box[0]} x {box[3] - box[1]}"


def _span(share: float, end: int) -> tuple[float, float]:
    return (1 - share, 1.0) if end else (0.0, share)


def _grown_side(start: int, stop: int, extent: int, smallest: int) -> tuple[int, int]:
    length = min(max(stop - start, smallest), extent)
    first = min(max((start + stop - length) // 2, 0), extent - length)
    return first, first + length
