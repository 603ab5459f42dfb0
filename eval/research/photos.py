"""Photos as the training reads them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def opened_photo(file: Path, longest: int) -> Image.Image:
    """Return a photo in RGB, its longer side at most ``longest`` pixels; of a JPEG no more than needed is decoded."""
    with Image.open(file) as opened:
        opened.draft("RGB", (longest, longest))
        photo = opened.convert("RGB")
    photo.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return photo


def as_jpeg(photo: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Return the photo as a camera would save it: JPEG of a quality from 82 to 95."""
    file = io.BytesIO()
    photo.save(file, "JPEG", quality=int(rng.integers(82, 96)))
    return Image.open(file).convert("RGB")
