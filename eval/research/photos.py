"""Read and save photos for the training."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def opened_photo(file: Path, longest: int) -> Image.Image:
    """Return a photo in RGB with a longer side of at most ``longest`` pixels; decode a JPEG only as far as needed."""
    with Image.open(file) as opened:
        opened.draft("RGB", (longest, longest))
        photo = opened.convert("RGB")
    photo.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return photo


def as_jpeg(photo: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Return the photo after saving it as JPEG of quality 82 to 95, as a camera does."""
    file = io.BytesIO()
    photo.save(file, "JPEG", quality=int(rng.integers(82, 96)))
    return Image.open(file).convert("RGB")
