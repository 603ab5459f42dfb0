"""Photos as the training reads them."""

from pathlib import Path

from PIL import Image


def opened_photo(file: Path, longest: int) -> Image.Image:
    """A photo in RGB, its longer side at most ``longest`` pixels; of a JPEG no more than needed is decoded."""
    with Image.open(file) as opened:
        opened.draft("RGB", (longest, longest))
        photo = opened.convert("RGB")
    photo.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return photo
