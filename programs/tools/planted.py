"""Photos with damage planted in a part of them: to train what finds it, and to ask about it."""

import io
import zlib
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.tools.distort import DISTORTION_LEVELS, KINDS, distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.categories import BLURS, COMPRESSION, CONTRAST
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

FLAT = "flat"  # a part that was lost: of one color
PLANTED = (*KINDS, FLAT)
# What damage may be called. A mosaic and a lost part are neither blur nor coding, and look like both.
CORRECT: dict[str, tuple[DetectableDistortion, ...]] = {
    kind: (made.category,) for kind, made in KINDS.items() if made.category in DETECTABLE
} | {
    "pixelate": (COMPRESSION, BLURS),
    FLAT: (COMPRESSION, CONTRAST),
    "jpeg2000": (COMPRESSION, BLURS),
    "fast_fading": (COMPRESSION, BLURS),
    "low_resolution": (BLURS, COMPRESSION),
}
SAVED_AS_JPEG = 0.5  # share of the photos that are saved again after damage was planted
JPEG_QUALITIES = (60, 96)  # of these, the second excluded
FEATHER = 0.04  # of the longer side: the width of a soft border


@dataclass(frozen=True)
class Planted:
    """A photo with damage of one kind at a level 1..5; ``share`` (H, W) in 0..1 is how much of each pixel is damaged.

    ``box`` is the smallest rectangle around what is damaged at least half.
    """

    pixels: RGB
    kind: str
    level: int
    share: NDArray[np.float64]
    box: Box


def plant(pixels: RGB, kind: str, level: int, box: Box, seed: int, *, round_and_soft: bool = False) -> Planted:
    """Return the photo with one kind of ``PLANTED`` in a box; with ``round_and_soft`` in its ellipse, softly bordered.

    ``level`` is 1 (slight) to 5 (extreme); the same seed gives the same pixels.
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
        color = (
            np.random.default_rng(seed).integers(0, 256) if level % 2 else pixels[top:bottom, left:right].mean((0, 1))
        )
        damaged = np.broadcast_to(np.asarray(color, float), pixels.shape)
    else:
        damaged = distort(pixels, kind, level, seed=seed).astype(float)
    mixed = share[..., None] * damaged + (1 - share[..., None]) * pixels
    rows, columns = np.flatnonzero((share >= 0.5).any(axis=1)), np.flatnonzero((share >= 0.5).any(axis=0))
    tight = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return Planted(np.clip(np.rint(mixed), 0, 255).astype(np.uint8), kind, level, share, tight)


def named_box(name: str, size: tuple[int, int]) -> Box:
    """The box of a ninth ("ninth 4" is the middle), a quarter ("quarter 0") or a half ("half left") of the frame."""
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


NAMED = (
    *(f"ninth {number}" for number in range(9)),
    *(f"quarter {number}" for number in range(4)),
    *(f"half {side}" for side in ("left", "right", "top", "bottom")),
)


def random_box(size: tuple[int, int], rng: np.random.Generator) -> Box:
    """A named place, or any rectangle of 4 % to 50 % of the frame."""
    if rng.random() < 0.5:
        return named_box(NAMED[rng.integers(len(NAMED))], size)
    area, shape = np.exp(rng.uniform(np.log(0.04), np.log(0.5))), np.exp(rng.uniform(-0.6, 0.6))
    width, height = (
        int(np.clip(side * np.sqrt(area) * stretch, 48, side))
        for side, stretch in zip(size, (shape, 1 / shape), strict=True)
    )
    left, top = (int(rng.integers(0, side - part + 1)) for side, part in zip(size, (width, height), strict=True))
    return left, top, left + width, top + height


def seed_of(name: str, number: int) -> int:
    """A seed for the ``number``-th draw of a photo, by the photo's name."""
    return zlib.crc32(f"{name} {number}".encode())


def random_planted(pixels: RGB, name: str, number: int) -> Planted:
    """The ``number``-th damage planted in a photo: kind, level, place and border are drawn by its name and number."""
    rng = np.random.default_rng(seed_of(name, number))
    kind = PLANTED[rng.integers(len(PLANTED))]
    level = int(rng.integers(DISTORTION_LEVELS[0], DISTORTION_LEVELS[-1], endpoint=True))
    box = random_box((pixels.shape[1], pixels.shape[0]), rng)
    planted = plant(pixels, kind, level, box, int(rng.integers(1 << 31)), round_and_soft=bool(rng.random() < 0.25))
    return replace(planted, pixels=perhaps_saved(planted.pixels, rng))


def perhaps_saved(pixels: RGB, rng: np.random.Generator) -> RGB:
    """The pixels, in half of the draws after they were saved as JPEG of any quality that photos usually have."""
    return saved_as_jpeg(pixels, int(rng.integers(*JPEG_QUALITIES))) if rng.random() < SAVED_AS_JPEG else pixels


def saved_as_jpeg(pixels: RGB, quality: int) -> RGB:
    """The pixels after they were saved as JPEG, with color at half the size, as most programs do."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))
