"""Make images for questions with known answers: photos with one distortion, everywhere or in a part."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from agenticiqa.eval.questions.wordings import FIRST, Wordings
from agenticiqa.eval.research.distort import distort
from agenticiqa.eval.research.planted import named_box, plant
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.loading import load_pixels
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.types import Box

LONGEST = 384  # pixels of the longer side: scaled down, a photo loses most of its own noise, blur and coding
SHORTEST = 96  # of the shorter side


def damaged(photo: RGB, kind: str, level: int, box: Box | None, seed: int) -> RGB:
    """Return a photo with one distortion, everywhere or in a box with a sharp border; the photo itself at level 0."""
    if not level:
        return photo
    return plant(photo, kind, level, box, seed).pixels if box else distort(photo, kind, level, seed=seed)


class ImageMaker:
    """A maker of one photo's images below ``folder``, each once; numbered names do not reveal the distortion.

    ``content`` names the photo, and ``wordings`` are for its questions. ``rng``, seeded by ``seed`` and the content,
    draws all random choices of its questions.
    """

    def __init__(self, content: str, pixels: RGB, folder: Path, seed: int, wordings: Wordings = FIRST) -> None:
        self.content, self.pixels, self.folder, self.wordings = content, pixels, folder, wordings
        self.rng = np.random.default_rng([seed, zlib.crc32(content.encode())])
        self.made: dict[tuple[str, int, str], str] = {}

    def image(self, kind: str = "", level: int = 0, place: str = "") -> str:
        """Return the path, relative to ``folder``, of the photo with a distortion; the photo itself for level 0."""
        key = (kind, level, place) if level else ("", 0, "")
        if key not in self.made:
            name = f"images/{self.content}_{len(self.made)}.png"
            self.folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(self._pixels(*key)).save(self.folder / name)
            self.made[key] = name
        return self.made[key]

    def _pixels(self, kind: str, level: int, place: str) -> RGB:
        height, width = self.pixels.shape[:2]
        box = named_box(place, (width, height)) if place else None
        return damaged(self.pixels, kind, level, box, zlib.crc32(f"{self.content} {kind}".encode()))

    def draw(self, values: Sequence[str], count: int = 1) -> list[str]:
        """Return this many different values, in random order."""
        return [values[index] for index in self.rng.permutation(len(values))[:count]]


def image_makers(photos: Sequence[Path], folder: Path, seed: int, wordings: Wordings = FIRST) -> Iterator[ImageMaker]:
    """Yield one maker per photo, in order. Raises ImageError for a file that is not an image, or is too small."""
    for number, path in enumerate(photos):
        yield ImageMaker(f"{number:04d}", _small(path), folder, seed, wordings)


def _small(path: Path) -> RGB:
    photo = Image.fromarray(load_pixels(path))
    photo.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    if min(photo.size) < SHORTEST:
        raise ImageError(
            f"{path}: scaled to {photo.width} x {photo.height} pixels, but each side must have at least {SHORTEST}; "
            "use another photo"
        )
    return np.asarray(photo)
