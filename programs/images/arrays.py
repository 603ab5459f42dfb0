"""Pixels as arrays: taken from Pillow, encoded without loss, and reduced to means."""

import io

import numpy as np
from PIL import Image

BAND = 250_000  # pixels that are converted at a time, few enough for a processor's cache


def unused_bits(high: int, depth: int = 16) -> str | None:
    """Return a note if the highest value, which is not 0, needs at least two bits less than the values have."""
    bits = high.bit_length()
    if not 0 < bits <= depth - 2:
        return None
    factor = (2**depth - 1) // (2**bits - 1)
    return (
        f"The values use only {bits} of {depth} bits, so the image is dark. If this is their range, multiply them by "
        f"{factor}."
    )


def rgb(image: Image.Image) -> np.ndarray:
    """Return the pixels as a read-only uint8 array of shape (height, width, 3)."""
    pixels = np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
    pixels.setflags(write=False)
    return pixels


def lossless(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    """Encode 8-bit RGB pixels without loss and without metadata, as PNG or WebP."""
    options = {"compress_level": 3} if kind == "PNG" else {"lossless": True, "quality": 0, "method": 0}
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def reduced(pixels: np.ndarray, factor: int) -> np.ndarray:
    """Return the means of ``factor`` x ``factor`` pixels of 8-bit RGB (fewer at the right and the lower border)."""
    height, width = pixels.shape[:2]
    rows = factor * max(1, BAND // (factor * width))
    bands = [Image.fromarray(pixels[top : top + rows]).reduce(factor) for top in range(0, height, rows)]
    return np.concatenate([np.asarray(band) for band in bands])
