"""Boxes (left, top, right, bottom): their areas, how far two overlap, and the names of places in an image."""

from collections.abc import Sequence

from agenticiqa.signatures.types import Box


def area(box: Sequence[float]) -> float:
    """Return the width times height."""
    return (box[2] - box[0]) * (box[3] - box[1])


def shared_area(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the area that two boxes share, 0 where they do not meet."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0) * max(height, 0)


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the intersection over union of two boxes, 0..1."""
    shared = shared_area(first, second)
    return shared / (area(first) + area(second) - shared)


_THIRDS = (0.0, 1 / 3, 2 / 3, 1.0)
# Left, top, right, bottom in shares of width and height.
_NAMED_PLACES: dict[str, tuple[float, float, float, float]] = {
    "whole image": (0, 0, 1, 1),
    "left half": (0, 0, 1 / 2, 1),
    "right half": (1 / 2, 0, 1, 1),
    "top half": (0, 0, 1, 1 / 2),
    "bottom half": (0, 1 / 2, 1, 1),
    "left third": (0, 0, 1 / 3, 1),
    "right third": (2 / 3, 0, 1, 1),
    "top third": (0, 0, 1, 1 / 3),
    "bottom third": (0, 2 / 3, 1, 1),
    "top left quarter": (0, 0, 1 / 2, 1 / 2),
    "top right quarter": (1 / 2, 0, 1, 1 / 2),
    "bottom left quarter": (0, 1 / 2, 1 / 2, 1),
    "bottom right quarter": (1 / 2, 1 / 2, 1, 1),
    "central half": (1 / 4, 1 / 4, 3 / 4, 3 / 4),
    "central column": (1 / 3, 0, 2 / 3, 1),
    "central row": (0, 1 / 3, 1, 2 / 3),
} | {
    name: (_THIRDS[column], _THIRDS[row], _THIRDS[column + 1], _THIRDS[row + 1])
    for row, names in enumerate(
        (
            ("top left corner", "top center", "top right corner"),
            ("center left", "center", "center right"),
            ("bottom left corner", "bottom center", "bottom right corner"),
        )
    )
    for column, name in enumerate(names)
}


def name_of_place(box: Box, size: tuple[int, int]) -> str:
    """Return the common name of the place in an image of ``size`` (width, height) that a box covers best.

    >>> name_of_place((0, 0, 330, 470), (640, 480)), name_of_place((213, 160, 426, 320), (640, 480))
    ('left half', 'center')
    """
    return max(_NAMED_PLACES, key=lambda name: overlap(box, _of_shares(_NAMED_PLACES[name], size)))


def _of_shares(edges: tuple[float, ...], size: tuple[int, int]) -> tuple[float, ...]:
    return tuple(edge * side for edge, side in zip(edges, (*size, *size), strict=True))
