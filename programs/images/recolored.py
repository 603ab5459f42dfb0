"""Recognize an image whose red and blue are swapped relative to its reference (BGR for RGB).

Most metrics compare structure or brightness, and hardly respond to this. The channels count as swapped if the swap
explains the image far better than any tint of the reference does.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]
Span = tuple[float, float, float, float]  # left, top, right, bottom in pixels

COARSE = 128  # pixels of the longer side of the copies
EXPLAINS = 0.3  # largest share of the reference's unexplained variance that the swap may leave
BETTER = 0.7  # the same, as a share of the variance that the reference's best tint leaves
VISIBLE = 4.0  # gray levels, RMS: a smaller difference is ignored
SWAPPED = "red and blue are swapped (BGR for RGB)"


def recoloring(image: Pixels, reference: Pixels, here: Span | None = None, there: Span | None = None) -> str:
    """Return ``SWAPPED`` if ``image`` has red and blue of ``reference`` swapped, else an empty text.

    Both are uint8 RGB (H, W, 3); ``here`` and ``there`` are the compared parts, by default all of each. A swap that
    hardly shows, as in a nearly gray picture, does not count.
    """
    x, y, right, bottom = here or (0, 0, image.shape[1], image.shape[0])
    factor = max(1.0, max(right - x, bottom - y) / COARSE)
    size = max(1, round((right - x) / factor)), max(1, round((bottom - y) / factor))
    seen, original = _small(image, size, here), _small(reference, size, there)
    left, variance = _unexplained(seen, original), float(seen.var())
    if variance * left < VISIBLE**2:
        return ""
    tinted = sum(_unexplained(seen[..., c], original[..., c]) * float(seen[..., c].var()) for c in range(3)) / 3
    least = _unexplained(seen, original[..., ::-1])
    return SWAPPED if least <= EXPLAINS * left and least * variance <= BETTER * tinted else ""


def _small(pixels: Pixels, size: tuple[int, int], box: Span | None) -> Values:
    small = Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    return np.asarray(small, np.float32)


def _unexplained(seen: Values, colors: Values) -> float:
    """Return the share of the variance that one gain and offset for all colors do not explain: 0 to 1."""
    first, second = seen - seen.mean(), colors - colors.mean()
    agreement = float((first * second).sum()) / (float((first**2).sum()) * float((second**2).sum()) + 1e-9) ** 0.5
    return max(0.0, 1 - max(agreement, 0.0) ** 2)
