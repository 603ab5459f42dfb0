"""Recognize an image with changed colors of its reference: a negative, solarized, channels inverted or swapped.

Most metrics compare structure or brightness, and hardly respond to this. Each common color change is applied to a small
copy of the reference. Colors count as changed if one change explains the image far better than any tint.
"""

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]
Span = tuple[float, float, float, float]  # left, top, right, bottom in pixels

COARSE = 128  # pixels of the longer side of the copies
EXPLAINS = 0.3  # largest share of the reference's unexplained variance that a color change may leave
BETTER = 0.7  # the same, as a share of the variance that the reference's best tint leaves
VISIBLE = 4.0  # gray levels, RMS: a smaller difference is ignored
COLORS = ("red", "green", "blue")
ORDERS = {
    (2, 1, 0): "red and blue are swapped (BGR for RGB)",
    (0, 2, 1): "green and blue are swapped",
    (1, 0, 2): "red and green are swapped",
    (1, 2, 0): "the channels are in the order green, blue, red",
    (2, 0, 1): "the channels are in the order blue, red, green",
}
NEGATIVE = "all colors are inverted (a negative)"
SOLARIZED = (64, 96, 128, 160, 192)  # values at or above this level are inverted
CHROMA = {1: "Cb and Cr are swapped", 2: "each hue is replaced by its opposite"}


def recoloring(image: Pixels, reference: Pixels, here: Span | None = None, there: Span | None = None) -> str:
    """Describe how ``image`` has the colors of ``reference`` mixed up; empty where they are not.

    Both are uint8 RGB (H, W, 3); ``here`` and ``there`` are the compared parts, by default all of each. A change of
    brightness, contrast or tint does not count, and neither does one that hardly shows, as in a nearly gray picture.
    """
    x, y, right, bottom = here or (0, 0, image.shape[1], image.shape[0])
    factor = max(1.0, max(right - x, bottom - y) / COARSE)
    size = max(1, round((right - x) / factor)), max(1, round((bottom - y) / factor))
    small, pristine = _small(image, size, here), _small(reference, size, there)
    seen, original = np.asarray(small, np.float32), np.asarray(pristine, np.float32)
    left, variance = _unexplained(seen, original), float(seen.var())
    if variance * left < VISIBLE**2:
        return ""
    tinted = sum(_unexplained(seen[..., c], original[..., c]) * float(seen[..., c].var()) for c in range(3)) / 3
    ways = [(_unexplained(seen, colors), words) for words, colors in _mixed_up(pristine)]
    least, words = min(ways, key=lambda way: round(way[0], 3))  # of equal ones the first
    return words if least <= EXPLAINS * left and least * variance <= BETTER * tinted else ""


def _small(pixels: Pixels, size: tuple[int, int], box: Span | None) -> Image.Image:
    return Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)


def _unexplained(seen: Values, colors: Values) -> float:
    """Return the share of the variance that one gain and offset for all colors do not explain: 0 to 1."""
    first, second = seen - seen.mean(), colors - colors.mean()
    agreement = float((first * second).sum()) / (float((first**2).sum()) * float((second**2).sum()) + 1e-9) ** 0.5
    return max(0.0, 1 - max(agreement, 0.0) ** 2)


def _mixed_up(picture: Image.Image) -> Iterator[tuple[str, Values]]:
    """Yield each way to mix up the channels of a picture: its description, and its pixels."""
    rgb, ycc = np.asarray(picture), np.asarray(picture.convert("YCbCr"))
    for order, flip in product(permutations(range(3)), product((True, False), repeat=3)):
        words = [ORDERS[order]] if order in ORDERS else []
        inverted = [f"{name} is inverted" for name, is_so in zip(COLORS, flip, strict=True) if is_so]
        words += [NEGATIVE] if all(flip) else inverted
        if words:
            yield " and ".join(words), np.where(flip, 255 - rgb, rgb)[..., order].astype(np.float32)
    for level in SOLARIZED:
        yield (
            f"levels above {level} are inverted (solarized)",
            np.where(rgb >= level, 255 - rgb, rgb).astype(np.float32),
        )
    for luma, chroma in product((False, True), (0, 1, 2)):
        words = ["brightness is inverted"] if luma else []
        words += [CHROMA[chroma]] if chroma else []
        if words and not (luma and chroma == 2):  # which is the negative
            changed = np.where((luma, chroma == 2, chroma == 2), 255 - ycc, ycc)
            changed = changed[..., [0, 2, 1]] if chroma == 1 else changed
            as_rgb = Image.fromarray(np.ascontiguousarray(changed), "YCbCr").convert("RGB")
            yield " and ".join(words), np.asarray(as_rgb, np.float32)
