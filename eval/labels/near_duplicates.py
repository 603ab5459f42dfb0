"""Find near duplicates in labels by a perceptual hash: almost equal images that count as different scenes.

The hash is pHash of 64 bits (C. Zauner 2010, Implementation and Benchmarking of Perceptual Image Hash Functions), as
the package ``imagehash`` computes it, of the pixels that are measured.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.embedded import shown_path
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.loading import load_pixels

MOST_IMAGES = 20_000  # images of the largest set that is compared
# 20 of 21 pairs in BIQ2021, CLIVE and AGIQA-3K with at most 8 other bits show one scene; with 10, a smaller share does.
MOST_BITS = 8  # differing bits of 64
SIDE = 32  # pixels, the side of the gray image that is hashed
FLAT = 2.0  # standard deviation in gray levels below which the hash is noise
BLOCK = 512  # rows of the table of distances at a time

Watch = Callable[[Iterable[Path], int], Iterable[Path]]


def near_duplicates(
    labels: Sequence[LabeledImage], watch: Watch = lambda paths, total: paths
) -> list[tuple[Path, Path]] | None:
    """Return the pairs of almost equal images with different scenes or splits.

    A reference represents all its copies. ``watch`` wraps the files, for progress. Returns ``None`` for more than
    ``MOST_IMAGES`` files, which are not compared.
    """
    use: dict[Path, set[tuple[str, str | None]]] = {}
    for label in labels:
        use.setdefault(label.reference or label.image, set()).add((label.content, label.split))
    if len(use) > MOST_IMAGES:
        return None
    hashes = {path: code for path in watch(use, len(use)) if (code := perceptual_hash(path)) is not None}
    paths = list(hashes)
    return [
        (paths[a], paths[b]) for a, b in _near_pairs(list(hashes.values())) if len(use[paths[a]] | use[paths[b]]) > 1
    ]


def near_duplicates_doubt(pairs: Sequence[tuple[Path, Path]] | None, labels: Sequence[LabeledImage]) -> str | None:
    """Return a warning about the pairs that ``near_duplicates`` found in labels; ``None`` if there are none."""
    if pairs is None:
        return f"the search for near duplicates was skipped, because there are more than {MOST_IMAGES:,} images"
    if not pairs:
        return None
    shown = {label.image: shown_path(label) for label in labels}
    a, b = (shown.get(path, path) for path in pairs[0])
    return (
        f"{len(pairs)} pairs of near-duplicate images have different scenes or splits, such as {a} and {b}. If they "
        "show the same scene, give them the same value in the column content; otherwise intervals are too narrow"
    )


def perceptual_hash(path: Path) -> int | None:
    """Return the 64 bits of an image's pHash; ``None`` if it cannot be read, or has only one color."""
    import imagehash  # a late import, as commands without labels do not need it

    try:
        pixels = load_pixels(path, draft_side=4 * SIDE)
    except ImageError:
        return None
    gray = Image.fromarray(pixels).convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    if np.asarray(gray).std() < FLAT:
        return None
    return int(str(imagehash.phash(gray)), 16)


def _near_pairs(hashes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the places of any two hashes that differ in at most ``MOST_BITS``, the lower place first."""
    bits = np.array(hashes, dtype=np.uint64)
    for start in range(0, len(bits), BLOCK):
        differing = np.bitwise_count(bits[start : start + BLOCK, None] ^ bits[None, :])
        for row, column in np.argwhere(differing <= MOST_BITS).tolist():
            if start + row < column:
                yield start + row, column
