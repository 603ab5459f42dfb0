"""Areas of boxes (left, top, right, bottom): of one, what two share, and how far two overlap."""

from collections.abc import Sequence


def area(box: Sequence[float]) -> float:
    """Width times height."""
    return (box[2] - box[0]) * (box[3] - box[1])


def shared_area(first: Sequence[float], second: Sequence[float]) -> float:
    """The area that two boxes share, 0 where they do not meet."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0) * max(height, 0)


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Intersection over union, 0..1."""
    shared = shared_area(first, second)
    return shared / (area(first) + area(second) - shared)
