"""Nearly equal images that count as different scenes, by a perceptual hash.

The hash is pHash of 64 bits (C. Zauner 2010, Implementation and Benchmarking of Perceptual Image Hash Functions): the
image as 32 x 32 gray levels, the 8 x 8 lowest frequencies of its cosine transform without the first row and column,
each a bit: whether it is above their median.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.fft import dctn

from agenticiqa.eval.datasets import LabeledImage

MOST_BITS = 8  # of 64 that differ: so many, the pairs in CLIVE and BIQ2021 show one scene; with 10, not all do
MOST_IMAGES = 20_000  # more are not compared
SIDE, LOW = 32, slice(1, 9)
BLOCK = 512  # rows of the table of distances at a time

Watch = Callable[[Iterable[Path], int], Iterable[Path]]


def phash(path: Path) -> int | None:
    """The hash of an image, 64 bits; ``None`` if it cannot be read."""
    try:
        with Image.open(path) as image:
            image.draft("L", (4 * SIDE, 4 * SIDE))  # a JPEG is decoded at down to an eighth of its size
            gray = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    low = dctn(np.asarray(gray, dtype=np.float64))[LOW, LOW]
    return int.from_bytes(np.packbits(low > np.median(low)).tobytes())


def near_duplicates(
    labels: Sequence[LabeledImage], watch: Watch = lambda paths, total: paths
) -> list[tuple[Path, Path]] | None:
    """Pairs of nearly equal images that are of different contents, or of different splits.

    Where there is a reference it stands for its copies. ``watch`` wraps the files, for progress. ``None`` for more than
    ``MOST_IMAGES`` files, which are not compared.
    """
    use: dict[Path, set[tuple[str, str | None]]] = {}
    for label in labels:
        use.setdefault(label.reference or label.image, set()).add((label.content, label.split))
    if len(use) > MOST_IMAGES:
        return None
    hashes = {path: found for path in watch(use, len(use)) if (found := phash(path)) is not None}
    paths = list(hashes)
    return [(paths[a], paths[b]) for a, b in _near(list(hashes.values())) if len(use[paths[a]] | use[paths[b]]) > 1]


def near_duplicates_doubt(pairs: Sequence[tuple[Path, Path]] | None) -> str | None:
    """One line about what ``near_duplicates`` found; ``None`` if nothing."""
    if pairs is None:
        return f"among more than {MOST_IMAGES:,} images nearly equal ones are not looked for"
    if not pairs:
        return None
    a, b = pairs[0]
    return (
        f"nearly equal images count as different scenes or are in different splits ({len(pairs)} found, such as {a} "
        f"and {b}): if they show one scene, give them one content, or intervals are too narrow"
    )


def _near(hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    bits = np.array(hashes, dtype=np.uint64)
    for start in range(0, len(bits), BLOCK):
        differing = np.bitwise_count(bits[start : start + BLOCK, None] ^ bits[None, :])
        for row, column in np.argwhere(differing <= MOST_BITS).tolist():
            if start + row < column:
                yield start + row, column
