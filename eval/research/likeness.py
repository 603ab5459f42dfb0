"""Group photos that show nearly the same (series of one scene and copies) by small gray copies of the photos.

Public sets have such photos, even across official splits: every fifth test photo of BIQ2021 resembles a training photo.
Folds by file name would therefore overestimate a model.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image

SIDE = 16  # pixels of a gray copy's side
ALIKE = 0.9  # least correlation of the copies of two similar photos


def gray_copies(files: Sequence[Path]) -> NDArray[np.float32]:
    """Return gray copies of the photos, 16 x 16 pixels, with mean 0 and length 1, (N, 256)."""
    copies = np.empty((len(files), SIDE * SIDE), np.float32)
    for copy, file in zip(copies, files, strict=True):
        with Image.open(file) as image:
            image.draft("L", (4 * SIDE, 4 * SIDE))  # a JPEG is decoded only as far as needed
            copy[:] = np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX), np.float32).ravel()
    copies -= copies.mean(axis=1, keepdims=True)
    return copies / np.maximum(np.linalg.norm(copies, axis=1, keepdims=True), 1e-6)


def groups_of(contents: Sequence[str], copies: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the group (N,) of each photo. Photos of one scene, and similar ones, form a group, also via others."""
    names, content = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    alike = np.argwhere(np.triu(copies @ copies.T >= ALIKE, 1))
    photos = np.concatenate([alike, np.stack([np.arange(len(content)), len(content) + content], axis=1)])
    size = len(content) + len(names)
    graph = scipy.sparse.coo_array((np.ones(len(photos), bool), tuple(photos.T)), shape=(size, size))
    group: NDArray[np.intp] = scipy.sparse.csgraph.connected_components(graph, directed=False)[1].astype(np.intp)
    return group[: len(content)]
