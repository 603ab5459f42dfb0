"""Plant random damage in a part of photos, as training samples for ``train_patches``."""

import io
import zlib
from dataclasses import replace

import numpy as np
from PIL import Image

from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS
from agenticiqa.eval.research.planted import FLAT, PLANTED, Planted, named_box, plant
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.categories import BLURS, COMPRESSION, CONTRAST
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import TRAINED, DetectableDistortion

# Accepted categories of each damage. A mosaic and a lost part look like blur and like coding.
CORRECT: dict[str, tuple[DetectableDistortion, ...]] = {
    kind: (made.category,) for kind, made in KINDS.items() if made.category in TRAINED
} | {
    "pixelate": (COMPRESSION, BLURS),
    FLAT: (COMPRESSION, CONTRAST),
    "jpeg2000": (COMPRESSION, BLURS),
    "fast_fading": (COMPRESSION, BLURS),
    "low_resolution": (BLURS, COMPRESSION),
}
SAVED_AS_JPEG = 0.5  # share of the photos that are saved after damage was planted
JPEG_QUALITIES = (60, 96)  # range of qualities, without the second
NAMED = (
    *(f"ninth {number}" for number in range(9)),
    *(f"quarter {number}" for number in range(4)),
    *(f"half {side}" for side in ("left", "right", "top", "bottom")),
)


def random_box(size: tuple[int, int], rng: np.random.Generator) -> Box:
    """Return the box of a named place, or of a random rectangle of 4 % to 50 % of the frame."""
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
    """Return a seed for the ``number``-th draw of a photo, by the photo's name."""
    return zlib.crc32(f"{name} {number}".encode())


def random_planted(pixels: RGB, name: str, number: int) -> Planted:
    """Plant damage in a photo; its name and the number determine kind, strength, place and border."""
    rng = np.random.default_rng(seed_of(name, number))
    kind = PLANTED[rng.integers(len(PLANTED))]
    strength = int(rng.integers(DISTORTION_STRENGTHS[0], DISTORTION_STRENGTHS[-1], endpoint=True))
    box = random_box((pixels.shape[1], pixels.shape[0]), rng)
    planted = plant(pixels, kind, strength, box, int(rng.integers(1 << 31)), round_and_soft=bool(rng.random() < 0.25))
    return replace(planted, pixels=perhaps_saved(planted.pixels, rng))


def perhaps_saved(pixels: RGB, rng: np.random.Generator) -> RGB:
    """Return the pixels; in half of the draws they are saved as JPEG first, in a usual quality of photos."""
    return saved_as_jpeg(pixels, int(rng.integers(*JPEG_QUALITIES))) if rng.random() < SAVED_AS_JPEG else pixels


def saved_as_jpeg(pixels: RGB, quality: int) -> RGB:
    """Return the pixels after saving them as JPEG, with color at half the size, as most programs do."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))
