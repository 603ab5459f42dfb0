"""Plant damage in a part of a photo, for questions about regions."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.types import Box

FLAT = "flat"  # a lost part, filled with one color
PLANTED = (*KINDS, FLAT)
FEATHER = 0.04  # width of a soft border as a share of the longer side


@dataclass(frozen=True)
class Planted:
    """A photo with damage of one kind, ``level`` 1..5 strong; ``share`` (H, W) in 0..1 is how far a pixel is damaged.

    ``box`` is the smallest rectangle around all pixels with a share of at least 0.5.
    """

    pixels: RGB
    kind: str
    level: int
    share: NDArray[np.float64]
    box: Box


def plant(pixels: RGB, kind: str, strength: int, box: Box, seed: int, *, round_and_soft: bool = False) -> Planted:
    """Return the photo with one kind of ``PLANTED`` in a box; with ``round_and_soft`` in its ellipse, softly bordered.

    ``strength`` is 1 (slight) to 5 (extreme); the same seed gives the same pixels.
    """
    height, width = pixels.shape[:2]
    left, top, right, bottom = box
    share = np.zeros((height, width))
    if round_and_soft:
        y, x = np.mgrid[:height, :width]
        share[np.hypot(2 * (x + 0.5 - left) / (right - left) - 1, 2 * (y + 0.5 - top) / (bottom - top) - 1) <= 1] = 1
        share = scipy.ndimage.gaussian_filter(share, FEATHER * max(height, width) / 2)
    else:
        share[top:bottom, left:right] = 1
    if kind == FLAT:
        inside = pixels[top:bottom, left:right]
        color = np.random.default_rng(seed).integers(0, 256) if strength % 2 else inside.mean((0, 1))
        damaged = np.broadcast_to(np.asarray(color, float), pixels.shape)
    else:
        damaged = distort(pixels, kind, strength, seed=seed).astype(float)
    mixed = share[..., None] * damaged + (1 - share[..., None]) * pixels
    rows, columns = np.flatnonzero((share >= 0.5).any(axis=1)), np.flatnonzero((share >= 0.5).any(axis=0))
    tight = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return Planted(np.clip(np.rint(mixed), 0, 255).astype(np.uint8), kind, strength, share, tight)


def named_box(name: str, size: tuple[int, int]) -> Box:
    """Return the box of a ninth ("ninth 4" is the middle), a quarter ("quarter 0") or a half ("half left")."""
    width, height = size
    what, which = name.split()
    if what == "half":
        return {
            "left": (0, 0, width // 2, height),
            "right": (width // 2, 0, width, height),
            "top": (0, 0, width, height // 2),
            "bottom": (0, height // 2, width, height),
        }[which]
    parts = {"ninth": 3, "quarter": 2}[what]
    row, column = divmod(int(which), parts)
    return (
        column * width // parts,
        row * height // parts,
        (column + 1) * width // parts,
        (row + 1) * height // parts,
    )
