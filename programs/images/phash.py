"""A perceptual hash, and which images are nearly equal by it.

The hash is pHash of 64 bits (C. Zauner 2010, Implementation and Benchmarking of Perceptual Image Hash Functions): the
image as 32 x 32 gray levels, the 8 x 8 lowest frequencies of its cosine transform without the first row and column,
each a bit: whether it is above their median.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy  # its parts load when they are first used: only a group of photos needs them
from PIL import Image

from agenticiqa.programs.images import libtiff

MOST_BITS = 8  # of 64 that differ: so many, the pairs in CLIVE and BIQ2021 show one scene; with 10, not all do
SIDE, LOW = 32, slice(1, 9)
BLOCK = 512  # rows of the table of distances at a time


def phash(path: Path) -> int | None:
    """The hash of an image, 64 bits; ``None`` if it cannot be read."""
    try:
        with Image.open(path) as image:
            image.draft("L", (4 * SIDE, 4 * SIDE))  # a JPEG is decoded at down to an eighth of its size
            libtiff.load(image)
            gray = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    low = scipy.fft.dctn(np.asarray(gray, dtype=np.float64))[LOW, LOW]
    return int.from_bytes(np.packbits(low > np.median(low)).tobytes())


def near_pairs(hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The places of any two hashes that differ in at most ``MOST_BITS``, the lower place first."""
    bits = np.array(hashes, dtype=np.uint64)
    for start in range(0, len(bits), BLOCK):
        differing = np.bitwise_count(bits[start : start + BLOCK, None] ^ bits[None, :])
        for row, column in np.argwhere(differing <= MOST_BITS).tolist():
            if start + row < column:
                yield start + row, column
